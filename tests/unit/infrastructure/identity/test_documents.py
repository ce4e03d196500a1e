"""Documents of identity providers: what is read of them, and what is refused."""

import asyncio
import base64
import json
from urllib.parse import parse_qs

import pytest

from application.identity.ports import ProviderMetadata
from application.workflows.http_request import HttpAnswer, HttpCall, HttpCallFailed
from domain.errors import ServiceError
from domain.json_value import JsonObject
from infrastructure.identity.documents import FRESH_S, MAX_DOCUMENT, RETRY_S, IdentityProviderDocuments
from tests.doubles.surroundings import FixedClock
from tests.people_builders import ISSUER, a_provider
from tests.refusals import refused

WELL_KNOWN = f"{ISSUER}/.well-known/openid-configuration"
METADATA: JsonObject = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "end_session_endpoint": f"{ISSUER}/logout",
    "authorization_response_iss_parameter_supported": True,
}


class Web:
    """Answers by URL, and what was sent."""

    def __init__(self) -> None:
        self.answers = {
            WELL_KNOWN: HttpAnswer(status=200, media_type="application/json", text=json.dumps(METADATA)),
            f"{ISSUER}/keys": HttpAnswer(status=200, media_type="", text='{"keys": [{"kty": "RSA"}, 7]}'),
            f"{ISSUER}/token": HttpAnswer(status=200, media_type="", text='{"id_token": "a.b.c"}'),
        }
        self.sent: list[HttpCall] = []

    def says(self, url: str, text: str, status: int = 200) -> None:
        self.answers[url] = HttpAnswer(status=status, media_type="", text=text)

    async def send(self, call: HttpCall) -> HttpAnswer:
        self.sent.append(call)
        if call.url not in self.answers:
            raise HttpCallFailed("http_blocked", "The address is not public.", retryable=False)
        return self.answers[call.url]


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def documents(web: Web, clock: FixedClock) -> IdentityProviderDocuments:
    return IdentityProviderDocuments(http=web, clock=clock)


@pytest.mark.requirement("P1")
async def test_metadata_is_read_once_an_hour(documents: IdentityProviderDocuments, web: Web, clock: FixedClock) -> None:
    for _ in range(2):
        await documents.metadata(a_provider())
    found = await documents.metadata(a_provider())
    assert (found.token_endpoint, found.end_session_endpoint) == (f"{ISSUER}/token", f"{ISSUER}/logout")
    assert found.names_itself_in_answers
    assert len(web.sent) == 1
    clock.advance(FRESH_S)
    await documents.metadata(a_provider())
    assert len(web.sent) == 2


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    "metadata",
    [
        {**METADATA, "issuer": "https://evil.example"},
        {**METADATA, "issuer": f"{ISSUER}/"},
        {**METADATA, "token_endpoint": "http://login.example.com/token"},
        {**METADATA, "end_session_endpoint": "javascript:alert(1)"},
        {**METADATA, "authorization_endpoint": None},
        {},
    ],
)
async def test_metadata_of_another_issuer_or_without_tls_is_refused(
    documents: IdentityProviderDocuments, web: Web, metadata: JsonObject
) -> None:
    web.says(WELL_KNOWN, json.dumps(metadata))
    with refused("identity_provider_unavailable"):
        await documents.metadata(a_provider())


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    ("text", "status"),
    [("[]", 200), ("not json", 200), ("{}", 404), (" " * (MAX_DOCUMENT + 1), 200), ("[" * 9_999, 200)],
)
async def test_what_is_no_document_is_refused(
    documents: IdentityProviderDocuments, web: Web, text: str, status: int
) -> None:
    web.says(WELL_KNOWN, text, status)
    with refused("identity_provider_unavailable"):
        await documents.metadata(a_provider())


@pytest.mark.requirement("P1")
async def test_an_issuer_that_the_guard_blocks_says_why(documents: IdentityProviderDocuments, web: Web) -> None:
    del web.answers[WELL_KNOWN]
    with pytest.raises(ServiceError) as raised:
        await documents.metadata(a_provider())
    assert "login.example.com" in raised.value.detail
    assert "not public" in raised.value.detail


@pytest.mark.requirement("P1")
async def test_keys_are_read_each_time(documents: IdentityProviderDocuments, web: Web) -> None:
    assert await documents.keys(ISSUER) == [{"kty": "RSA"}]
    web.says(f"{ISSUER}/keys", "{}")
    assert await documents.count_keys(a_provider()) == 0


async def test_keys_that_verify_no_token_do_not_count(documents: IdentityProviderDocuments, web: Web) -> None:
    keys = [{"kty": "RSA"}, {"kty": "oct"}, {"kty": "RSA", "use": "enc"}, {"kty": "EC", "alg": []}]
    web.says(f"{ISSUER}/keys", json.dumps({"keys": keys}))
    assert await documents.count_keys(a_provider()) == 1


async def test_many_who_begin_a_sign_in_cause_one_request_also_while_the_provider_is_away(
    documents: IdentityProviderDocuments, web: Web, clock: FixedClock
) -> None:
    web.says(WELL_KNOWN, "", 503)

    async def many() -> set[type[object]]:
        begun = (documents.metadata(a_provider()) for _ in range(5))
        return {type(each) for each in await asyncio.gather(*begun, return_exceptions=True)}

    for _ in range(2):
        assert await many() == {ServiceError}
        assert len(web.sent) == 1
    clock.advance(RETRY_S)
    web.says(WELL_KNOWN, json.dumps(METADATA))
    assert await many() == {ProviderMetadata}
    assert len(web.sent) == 2


@pytest.mark.requirement("P1")
async def test_a_code_is_redeemed_with_the_verifier_and_the_secret(
    documents: IdentityProviderDocuments, web: Web
) -> None:
    provider = a_provider(client_secret="s:3 +")
    tokens = await documents.redeem(provider, "code", redirect_uri="https://d/cb", verifier="v")
    assert tokens.id_token == "a.b.c"
    call = web.sent[-1]
    assert parse_qs((call.body or b"").decode()) == {
        "grant_type": ["authorization_code"],
        "code": ["code"],
        "redirect_uri": ["https://d/cb"],
        "code_verifier": ["v"],
    }
    assert dict(call.headers)["authorization"] == f"Basic {base64.b64encode(b'dragoman:s%3A3%20%2B').decode()}"


@pytest.mark.requirement("P1")
async def test_a_public_client_names_itself_and_a_provider_may_take_the_secret_in_the_form(
    documents: IdentityProviderDocuments, web: Web
) -> None:
    await documents.redeem(a_provider(), "code", redirect_uri="https://d/cb", verifier="v")
    assert parse_qs((web.sent[-1].body or b"").decode())["client_id"] == ["dragoman"]
    assert "authorization" not in dict(web.sent[-1].headers)

    posts = {**METADATA, "token_endpoint_auth_methods_supported": ["client_secret_post"]}
    web.says(WELL_KNOWN, json.dumps(posts))
    fresh = IdentityProviderDocuments(http=web, clock=FixedClock())
    await fresh.redeem(a_provider(client_secret="s"), "code", redirect_uri="https://d/cb", verifier="v")
    assert parse_qs((web.sent[-1].body or b"").decode())["client_secret"] == ["s"]


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ('{"error": "invalid_grant"}', 400, "sign_in_refused"),
        ("{}", 200, "sign_in_refused"),
        ('{"id_token": 7}', 200, "sign_in_refused"),
        ("", 502, "identity_provider_unavailable"),
    ],
)
async def test_a_code_that_the_provider_refuses_signs_nobody_in(
    documents: IdentityProviderDocuments, web: Web, text: str, status: int, code: str
) -> None:
    web.says(f"{ISSUER}/token", text, status)
    with refused(code):
        await documents.redeem(a_provider(), "code", redirect_uri="https://d/cb", verifier="v")
