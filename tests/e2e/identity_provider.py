"""A real OpenID Connect provider beside a service, and a person's way through its pages."""

import base64
import hashlib
import json
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from tests.e2e.service import ROOT, Json, Service

PROGRAM = ROOT / "tests" / "node" / "identity_provider.mjs"
NODE = shutil.which("node")
CLI_CLIENT = "dragoman-cli"
CLI_CALLBACK = "http://127.0.0.1/callback"
MACHINE, MACHINE_SECRET = "machine", "the-secret-of-a-machine-at-the-provider"
SIGNING_MACHINE = "signing-machine"
SECRET = "the-secret-of-dragoman-at-the-provider"
AT_TICKETS, AT_TICKETS_SECRET = "dragoman-at-tickets", "the-secret-of-dragoman-at-tickets"
"""A client at the authorization server of an MCP server, which takes assertions of the identity
provider."""
RULES = [
    {"claim": "groups", "value": "admins", "role": "admin"},
    {"claim": "groups", "value": "agents", "role": "operator"},
]
GROUPS = {"ann": ["agents"], "bob": ["agents"], "carla": ["admins"], "eve": ["visitors"]}


def needs_identity_provider() -> pytest.MarkDecorator:
    installed = (PROGRAM.parent / "node_modules" / "oidc-provider").exists()
    return pytest.mark.skipif(NODE is None or not installed, reason="needs `make node`")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    issuer: str

    def sign_tokens_with(self, algorithm: str) -> None:
        httpx.post(f"{self.issuer}/test/algorithm/{algorithm}", trust_env=False, timeout=60.0).raise_for_status()

    def tokens(
        self,
        name: str,
        *,
        scope: str = "openid profile email groups",
        resource: str | None = None,
        client_id: str = CLI_CLIENT,
        callback: str = CLI_CALLBACK,
        secret: str | None = None,
    ) -> Json:
        """The tokens of a person, as a client on their machine gets them; with a `resource`, the
        access token is for it."""
        target = {} if resource is None else {"resource": resource}
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": callback,
            "scope": scope,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **target,
        }
        with httpx.Client(trust_env=False, timeout=60.0) as browser:
            answer = self.answer(browser, str(httpx.URL(f"{self.issuer}/auth", params=query)), name)
            form = {
                "grant_type": "authorization_code",
                "code": parse_qs(urlsplit(answer).query)["code"][0],
                "redirect_uri": callback,
                "code_verifier": verifier,
                **target,
            }
            if secret is not None:
                browser.auth = (client_id, secret)
            else:
                form["client_id"] = client_id
            tokens = browser.post(f"{self.issuer}/token", data=form).raise_for_status().json()
        return dict(tokens)

    def answer(self, browser: httpx.Client, url: str, name: str) -> str:
        """The address to which the provider sends the browser back, after a person has signed in
        under a name."""
        for _ in range(10):
            if not url.startswith(self.issuer):
                return url
            response = browser.get(url)
            if response.is_success:
                response = browser.post(url, data={"name": name})
            assert response.has_redirect_location, response.text
            url = urljoin(url, response.headers["location"])
        raise AssertionError(f"the provider sends around in circles: {url}")

    def confirm(self, url: str, name: str) -> str:
        """The last page, after a person has confirmed the code of a device and signed in under a
        name."""
        with httpx.Client(trust_env=False, timeout=60.0) as browser:
            response = browser.get(url)
            for _ in range(15):
                form = re.search(r'<form[^>]*method="post"(?: action="([^"]*)")?', response.text)
                if response.has_redirect_location:
                    response = browser.get(urljoin(str(response.url), response.headers["location"]))
                elif form is not None:
                    fields = dict(re.findall(r'name="(xsrf|user_code)" value="([^"]*)"', response.text))
                    fields |= {"confirm": "yes"} if "xsrf" in fields else {"name": name}
                    response = browser.post(urljoin(str(response.url), form.group(1) or ""), data=fields)
                else:
                    return response.text
        raise AssertionError(f"the provider sends around in circles: {response.text}")


def providing(service: Service) -> AbstractContextManager[IdentityProvider]:
    """The provider, with this service among its clients."""
    return providing_for(service.url)


@contextmanager
def providing_for(
    url: str, *, machine_keys: Sequence[JsonObject] = (), **options: JsonValue
) -> Iterator[IdentityProvider]:
    """The same, before there is a service at this URL. `machine_keys` are public keys of the client
    SIGNING_MACHINE; `options` are further ones of the program."""
    assert NODE is not None
    wanted = {
        "redirectUris": [f"{url}/console/sign-in/callback"],
        "postLogoutRedirectUris": [f"{url}/console/sign-in"],
        "groups": GROUPS,
        "resource": f"{url}/mcp",
        "machineKeys": [*machine_keys],
        **options,
    }
    command = [NODE, str(PROGRAM), json.dumps(wanted)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            issuer = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", issuer), issuer
            yield IdentityProvider(issuer=issuer)
        finally:
            process.kill()


def register(service: Service, provider: IdentityProvider, **changes: object) -> Json:
    """The provider as one of the whole installation."""
    body = {
        "name": "company",
        "issuer": provider.issuer,
        "client_id": "dragoman",
        "client_secret": SECRET,
        "scopes": ["openid", "profile", "email", "groups"],
        "audiences": [CLI_CLIENT],
        "rules": RULES,
        "installation": True,
    }
    return service.call("POST", "/identity-providers", {**body, **changes})


def begin(browser: httpx.Client, service: Service, provider_id: str, target: str = "/console") -> str:
    """The address at the provider to which the console sends a browser."""
    response = browser.post(f"{service.url}/console/sign-in/with/{provider_id}", data={"next": target})
    assert response.status_code == httpx.codes.OK, response.text
    return str(response.headers["refresh"]).removeprefix("0; url=")
