"""Signing in with a code that a person confirms (RFC 8628)."""

import httpx
import pytest

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.device_flow import tokens_by_device
from interfaces.cli.sign_in.provider import DEVICE_GRANT, DeviceCode, Tokens
from tests.unit.interfaces.cli.sign_in.identity_provider_answers import (
    COMPANY,
    ENDPOINTS,
    Answers,
    an_id_token,
    error,
    tokens,
)

pytestmark = pytest.mark.requirement("P1")


def a_code(**changes: object) -> httpx.Response:
    code = {"device_code": "secret", "user_code": "WDJB-MJHT", "verification_uri": "https://login.example.com/device"}
    return httpx.Response(200, json={**code, "expires_in": 60, "interval": 5, **changes})


async def signed_in(answers: Answers, pauses: list[float], shown: list[DeviceCode]) -> Tokens:
    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    return await tokens_by_device(answers.client(), COMPANY, ENDPOINTS, shown.append, pause=pause)


async def test_the_code_is_shown_and_the_provider_asked_as_slowly_as_it_says() -> None:
    answers = Answers({"/device": [a_code()], "/token": [error("authorization_pending"), error("slow_down"), tokens()]})
    pauses: list[float] = []
    shown: list[DeviceCode] = []
    found = await signed_in(answers, pauses, shown)
    assert found == Tokens(id_token=an_id_token(), expires_at=2_000.0, refresh_token="second")
    assert (pauses, [code.user_code for code in shown]) == ([5, 5, 10], ["WDJB-MJHT"])
    assert answers.sent[0] == {"client_id": "cli", "scope": "openid email offline_access"}
    assert answers.sent[-1] == {"grant_type": DEVICE_GRANT, "device_code": "secret", "client_id": "cli"}


@pytest.mark.parametrize(
    ("code", "said"),
    [("access_denied", "was denied"), ("expired_token", "has expired"), ("invalid_client", "invalid_client")],
)
async def test_a_refusal_ends_the_sign_in(code: str, said: str) -> None:
    answers = Answers({"/device": [a_code()], "/token": [error(code)]})
    with pytest.raises(CommandFailure, match=said):
        await signed_in(answers, [], [])


async def test_a_code_that_is_not_confirmed_in_time_has_expired() -> None:
    answers = Answers({"/device": [a_code(expires_in=10)], "/token": [error("authorization_pending")] * 2})
    with pytest.raises(CommandFailure, match="has expired"):
        await signed_in(answers, [], [])


async def test_a_provider_that_gives_the_client_no_code_says_why() -> None:
    with pytest.raises(CommandFailure, match="unauthorized_client"):
        await signed_in(Answers({"/device": [error("unauthorized_client")]}), [], [])
