"""Directories manage people by SCIM: an independent tester, and a leaver who is refused
everywhere."""

import json
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.identity_provider import CLI_CLIENT, IdentityProvider, needs_identity_provider, providing, register
from tests.e2e.service import ROOT, Json, Service, serving

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
TESTER = ROOT / "tests" / "e2e" / "clients" / "scim_tester.py"

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P2")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("scim") / "home") as running:
        yield running


@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make peers`")
def test_an_independent_tester_finds_nothing_wrong(service: Service) -> None:
    body = {"name": "tested", "issuer": "https://login.example.com", "client_id": "dragoman"}
    service.call("POST", "/identity-providers", body)
    token = service.call("POST", "/identity-providers/tested/scim-token")["token"]

    tester = [str(PYTHON), str(TESTER), f"{service.url}/scim/v2", token]
    done = subprocess.run(tester, capture_output=True, text=True, timeout=200, check=False)

    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    wrong = [each for each in results if each["status"] not in {"SUCCESS", "SKIPPED", "COMPLIANT"}]
    assert not wrong, "\n".join(f"{each}"[-1500:] for each in wrong)
    assert len(results) > 40


def scim(service: Service, token: str, method: str, path: str, body: Json | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/scim+json"}
    return httpx.request(
        method, f"{service.url}/scim/v2{path}", json=body, headers=headers, trust_env=False, timeout=60.0
    )


def patch(*operations: Json) -> Json:
    return {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [*operations]}


def a_person(name: str) -> Json:
    return {
        "schemas": [
            "urn:ietf:params:scim:schemas:core:2.0:User",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
        ],
        "userName": f"{name}@example.com",
        "externalId": name,
        "name": {"givenName": name.title(), "familyName": "Example"},
        "emails": [{"value": f"{name}@example.com", "type": "work", "primary": True}],
        "active": True,
        "title": "Agent",
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Sales"},
    }


@pytest.fixture(scope="module")
def provider(service: Service) -> Iterator[IdentityProvider]:
    with providing(service) as running:
        yield running


@pytest.fixture(scope="module")
def directory(service: Service, provider: IdentityProvider) -> str:
    """The token of the directory of the identity provider."""
    rules = [{"claim": "scim_groups", "value": "Agents", "role": "operator"}]
    rules += [{"claim": "sub", "value": name, "role": "viewer"} for name in ("ida", "yan")]
    register(service, provider, audiences=[CLI_CLIENT], rules=rules)
    return str(service.call("POST", "/identity-providers/company/scim-token")["token"])


@needs_identity_provider()
def test_a_group_of_the_directory_gives_a_role_and_a_leaver_is_refused_at_once(
    service: Service, provider: IdentityProvider, directory: str
) -> None:
    person = scim(service, directory, "POST", "/Users", a_person("ann")).json()
    assert (person["id"][:4], person["userName"]) == ("usr_", "ann@example.com")
    ann = {"Authorization": f"Bearer {provider.tokens('ann')['id_token']}"}

    def answer() -> tuple[int, str]:
        got = httpx.get(f"{service.url}/v1/whoami", headers=ann, trust_env=False, timeout=60.0)
        return got.status_code, str(got.json().get("role") or got.json()["code"])

    assert answer() == (401, "sign_in_refused")
    group: Json = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "displayName": "Agents",
        "members": [{"value": person["id"]}],
    }
    assert scim(service, directory, "POST", "/Groups", group).status_code == httpx.codes.CREATED
    assert answer() == (200, "operator")
    [stored] = service.call("GET", "/groups")["data"]
    assert (stored["name"], stored["members"]) == ("Agents", [person["id"]])

    found = scim(service, directory, "GET", f'/Users?filter=userName eq "{person["userName"].upper()}"').json()
    assert [each["id"] for each in found["Resources"]] == [person["id"]]
    one = f"/Users/{person['id']}"
    for leaves in (
        {"op": "replace", "value": {"active": False}},
        {"op": "Replace", "path": "active", "value": "False"},
    ):
        assert scim(service, directory, "PATCH", one, patch(leaves)).is_success
        assert scim(service, directory, "GET", one).json()["active"] is False
        assert answer() == (401, "sign_in_refused")
        back = {"op": "replace", "path": "active", "value": True}
        assert scim(service, directory, "PATCH", one, patch(back)).is_success
        assert answer() == (200, "operator")

    assert scim(service, directory, "DELETE", one).status_code == httpx.codes.NO_CONTENT
    assert answer()[0] == httpx.codes.UNAUTHORIZED
    assert scim(service, directory, "GET", one).status_code == httpx.codes.NOT_FOUND
    assert service.call("GET", f"/users/{person['id']}")["status"] == "removed"


@needs_identity_provider()
def test_a_person_who_has_used_a_token_cannot_become_another_one(
    service: Service, provider: IdentityProvider, directory: str
) -> None:
    person = scim(service, directory, "POST", "/Users", a_person("ida")).json()
    assert service.call("GET", f"/users/{person['id']}")["last_sign_in_at"] is None

    def renamed(name: str) -> httpx.Response:
        change = patch({"op": "replace", "path": "externalId", "value": name})
        return scim(service, directory, "PATCH", f"/Users/{person['id']}", change)

    def id_of(name: str) -> str:
        headers = {"Authorization": f"Bearer {provider.tokens(name)['id_token']}"}
        answer = httpx.get(f"{service.url}/v1/whoami", headers=headers, trust_env=False, timeout=60.0)
        return str(answer.raise_for_status().json()["id"])

    assert renamed("ian").is_success, "nobody has had access yet"
    assert renamed("ida").is_success
    assert id_of("ida") == person["id"]
    assert service.call("GET", f"/users/{person['id']}")["last_sign_in_at"] is not None
    refused = renamed("yan")
    assert (refused.status_code, "cannot change" in refused.text) == (400, True)
    assert id_of("ida") == person["id"]
    assert id_of("yan") != person["id"]


def test_only_the_token_of_an_identity_provider_opens_scim_until_it_is_revoked(service: Service) -> None:
    body = {"name": "other", "issuer": "https://other.example.com", "client_id": "dragoman"}
    service.call("POST", "/identity-providers", body)
    first = service.call("POST", "/identity-providers/other/scim-token")["token"]
    second = service.call("POST", "/identity-providers/other/scim-token")["token"]
    assert scim(service, second, "GET", "/Users").json()["totalResults"] == 0
    for wrong in (first, service.key, "dgs_guessed"):
        refused = scim(service, wrong, "GET", "/Users")
        assert (refused.status_code, refused.headers["content-type"]) == (401, "application/scim+json")
    assert service.client.get("/users", headers={"Authorization": f"Bearer {second}"}).status_code == 401
    assert service.client.delete("/identity-providers/other/scim-token").status_code == 204
    assert scim(service, second, "GET", "/Users").status_code == 401
    assert httpx.get(f"{service.url}/scim/v2/ServiceProviderConfig", trust_env=False, timeout=60).json()["patch"][
        "supported"
    ]
