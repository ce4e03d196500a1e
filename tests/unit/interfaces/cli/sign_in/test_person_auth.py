"""Requests of a person who has signed in: tokens are renewed, once."""

import asyncio
from pathlib import Path

import httpx
import pytest

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.person_auth import PersonAuth
from interfaces.cli.sign_in.provider import ProviderClient
from interfaces.cli.sign_in.stored import StoredSignIn, StoredSignIns
from tests.unit.interfaces.cli.sign_in.identity_provider_answers import ISSUER, Answers, an_id_token, error, tokens

pytestmark = pytest.mark.requirement("P1")
SERVICE = "https://dragoman.example.com"
NOW = 1_000.0
METADATA = {"issuer": ISSUER, "authorization_endpoint": f"{ISSUER}/auth", "token_endpoint": f"{ISSUER}/token"}
WELL_KNOWN = "/.well-known/openid-configuration"
RENEWED = an_id_token(2_000.0)


def a_sign_in(expires_at: float, refresh_token: str | None = "first") -> StoredSignIn:
    return StoredSignIn(
        service=SERVICE,
        issuer=ISSUER,
        client_id="cli",
        id_token=an_id_token(expires_at, "former"),
        expires_at=expires_at,
        refresh_token=refresh_token,
    )


def renewing(*answers: httpx.Response) -> Answers:
    metadata = [httpx.Response(200, json=METADATA) for _ in answers]
    return Answers({WELL_KNOWN: metadata, "/token": [*answers]})


def auth_of(sign_in: StoredSignIn, stored: StoredSignIns, provider: ProviderClient) -> PersonAuth:
    return PersonAuth(sign_in, stored=stored, provider=provider, now=lambda: NOW)


async def sent(auth: PersonAuth, *statuses: tuple[int, str]) -> list[str]:
    """The tokens of a request that the service answers so, one answer after the other."""
    found = []
    answers = iter(statuses or [(200, "")])

    def answer(request: httpx.Request) -> httpx.Response:
        found.append(request.headers["authorization"].removeprefix("Bearer "))
        status, code = next(answers)
        return httpx.Response(status, json={"code": code})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), auth=auth) as client:
        await client.get(SERVICE)
    return found


@pytest.fixture
def stored(tmp_path: Path) -> StoredSignIns:
    return StoredSignIns(tmp_path)


async def test_a_valid_token_is_sent_as_it_is(stored: StoredSignIns) -> None:
    sign_in = a_sign_in(NOW + 60)
    assert await sent(auth_of(sign_in, stored, renewing().client())) == [sign_in.id_token]


async def test_an_expired_token_is_renewed_and_stored_before_the_request(stored: StoredSignIns) -> None:
    sign_in = a_sign_in(NOW + 10)
    stored.store(sign_in)
    answers = renewing(tokens())
    assert await sent(auth_of(sign_in, stored, answers.client())) == [RENEWED]
    assert answers.sent[-1] == {"grant_type": "refresh_token", "refresh_token": "first", "client_id": "cli"}
    kept = stored.of(SERVICE)
    assert kept is not None
    assert (kept.id_token, kept.expires_at, kept.refresh_token) == (RENEWED, 2_000.0, "second")


async def test_of_many_that_find_it_expired_one_renews_it(stored: StoredSignIns) -> None:
    sign_in = a_sign_in(NOW)
    stored.store(sign_in)
    client = renewing(tokens()).client()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(sent(auth_of(sign_in, stored, client))) for _ in range(5)]
    assert [task.result() for task in tasks] == [[RENEWED]] * 5


async def test_a_token_that_the_service_calls_invalid_is_renewed_once(stored: StoredSignIns) -> None:
    sign_in = a_sign_in(NOW + 60)
    stored.store(sign_in)
    auth = auth_of(sign_in, stored, renewing(tokens()).client())
    assert await sent(auth, (401, "token_invalid"), (401, "token_invalid")) == [sign_in.id_token, RENEWED]


async def test_a_person_whom_the_service_refuses_is_not_renewed(stored: StoredSignIns) -> None:
    sign_in = a_sign_in(NOW + 60)
    auth = auth_of(sign_in, stored, renewing().client())
    assert await sent(auth, (401, "sign_in_refused")) == [sign_in.id_token]


async def test_a_refresh_token_that_the_provider_does_not_replace_stays(stored: StoredSignIns) -> None:
    stored.store(a_sign_in(NOW))
    await sent(auth_of(a_sign_in(NOW), stored, renewing(tokens(refresh_token=None)).client()))
    kept = stored.of(SERVICE)
    assert kept is not None
    assert kept.refresh_token == "first"


@pytest.mark.parametrize("refresh_token", [None, "first"])
async def test_a_sign_in_that_cannot_be_renewed_has_expired(stored: StoredSignIns, refresh_token: str | None) -> None:
    sign_in = a_sign_in(NOW, refresh_token)
    stored.store(sign_in)
    auth = auth_of(sign_in, stored, renewing(error("invalid_grant")).client())
    with pytest.raises(CommandFailure, match="has expired"):
        await sent(auth)


async def test_a_sign_in_that_was_ended_meanwhile_is_not_used(stored: StoredSignIns) -> None:
    with pytest.raises(CommandFailure, match="has expired"):
        await sent(auth_of(a_sign_in(NOW), stored, renewing().client()))
