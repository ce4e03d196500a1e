"""An OAuth client as attackers write it: every step of the flow by itself, with any parameter."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests.e2e.service import Json, Service

CALLBACK = "http://127.0.0.1:33420/callback"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawClient:
    """A client that has registered itself."""

    service: Service
    client_id: str
    redirect_uri: str = CALLBACK
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def resource(self) -> str:
        return f"{self.service.url}/mcp?agent=reader"

    def url(self, **changes: str) -> str:
        """Its authorization request."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": "the-state",
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": self.resource,
            **changes,
        }
        return f"{self.service.url}/console/authorize?{urlencode(parameters)}"

    def redeem(self, code: str, **changes: str) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            "resource": self.resource,
            **changes,
        }
        return self.post("/oauth/token", **form)

    def refresh(self, token: str, **changes: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "client_id": self.client_id, "refresh_token": token, **changes}
        return self.post("/oauth/token", **form)

    def post(self, path: str, **form: str) -> httpx.Response:
        return httpx.post(f"{self.service.url}{path}", data=form, trust_env=False, timeout=60.0)

    def ping(self, token: str, query: str = "?agent=reader") -> int:
        """The status of a request with a token."""
        return self.ask(token, "ping", {}, query).status_code

    def ask(self, token: str, method: str, params: Json, query: str = "?agent=reader", **more: str) -> httpx.Response:
        """A request with a token; `more` are headers."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream", **more}
        url = f"{self.service.url}/mcp{query}"
        return httpx.post(url, json=message, headers=headers, trust_env=False, timeout=60.0)


def a_client(service: Service, redirect_uri: str = CALLBACK, name: str = "Raw client") -> RawClient:
    """The client of that name, registered once at a service, which bounds registrations."""
    client_id = _registered(service.url, redirect_uri, name)
    return RawClient(service=service, client_id=client_id, redirect_uri=redirect_uri)


@cache
def _registered(url: str, redirect_uri: str, name: str) -> str:
    body = {"client_name": name, "redirect_uris": [redirect_uri]}
    answer = httpx.post(f"{url}/register", json=body, trust_env=False, timeout=60.0)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return str(answer.json()["client_id"])


def answer_of(url: str) -> Json:
    """The parameters with which a browser came back."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
