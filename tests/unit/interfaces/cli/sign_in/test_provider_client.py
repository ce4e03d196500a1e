"""What the command line takes from an identity provider, and what it refuses."""

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.cli.failures import CommandFailure
from tests.unit.interfaces.cli.sign_in.identity_provider_answers import ENDPOINTS, ISSUER, Answers, tokens

pytestmark = pytest.mark.requirement("P1")
WELL_KNOWN = "/.well-known/openid-configuration"
METADATA: JsonObject = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "device_authorization_endpoint": f"{ISSUER}/device",
    "revocation_endpoint": f"{ISSUER}/revoke",
}


async def test_endpoints_are_those_of_the_issuers_metadata() -> None:
    answers = Answers({WELL_KNOWN: [httpx.Response(200, json=METADATA)]})
    assert await answers.client().endpoints(ISSUER) == ENDPOINTS


@pytest.mark.parametrize(
    "metadata",
    [
        {**METADATA, "issuer": "https://other.example.com"},
        {**METADATA, "token_endpoint": "http://login.example.com/token"},
        {**METADATA, "revocation_endpoint": "http://login.example.com/revoke"},
        {"issuer": ISSUER},
    ],
)
async def test_metadata_of_another_issuer_or_without_tls_is_refused(metadata: JsonObject) -> None:
    answers = Answers({WELL_KNOWN: [httpx.Response(200, json=metadata)]})
    with pytest.raises(CommandFailure, match=r"login\.example\.com"):
        await answers.client().endpoints(ISSUER)


async def test_an_issuer_without_tls_elsewhere_is_not_asked() -> None:
    answers = Answers({})
    with pytest.raises(CommandFailure, match="without TLS"):
        await answers.client().endpoints("http://login.example.com")
    assert not answers.sent


@pytest.mark.parametrize("token", ["opaque", "a.%%.c", "a.e30.c"])
async def test_an_id_token_without_a_time_is_refused(token: str) -> None:
    answers = Answers({"/token": [tokens(id_token=token)]})
    with pytest.raises(CommandFailure, match="not understood"):
        await answers.client().tokens(ENDPOINTS, {})


async def test_an_answer_without_an_id_token_signs_no_person_in() -> None:
    answers = Answers({"/token": [tokens(id_token=None)]})
    with pytest.raises(CommandFailure, match="no_id_token"):
        await answers.client().tokens(ENDPOINTS, {})


async def test_tokens_are_revoked_where_the_provider_can() -> None:
    answers = Answers({"/revoke": [httpx.Response(200)]})
    assert await answers.client().revoke(ENDPOINTS, "cli", "first")
    assert answers.sent == [{"token": "first", "token_type_hint": "refresh_token", "client_id": "cli"}]
