"""Signing in with a browser that comes back to this machine (RFC 8252)."""

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.loopback_flow import tokens_by_loopback
from interfaces.cli.sign_in.provider import Tokens
from tests.unit.interfaces.cli.sign_in.identity_provider_answers import COMPANY, ENDPOINTS, ISSUER, Answers, tokens

pytestmark = pytest.mark.requirement("P1")


async def signed_in(answers: Answers, *answered: Mapping[str, str]) -> tuple[Tokens, dict[str, str], list[int]]:
    """The tokens, what the provider was asked, and the statuses that browsers got which came with
    these parameters. `{state}` stands for the right one."""
    shown: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def show(url: str) -> None:
        assert url.startswith(f"{ISSUER}/auth?")
        shown.set_result({name: values[0] for name, values in parse_qs(urlsplit(url).query).items()})

    flow = asyncio.create_task(tokens_by_loopback(answers.client(), COMPANY, ENDPOINTS, show))
    asked = await shown
    statuses = []
    async with httpx.AsyncClient(trust_env=False, timeout=60) as browser:
        for parameters in answered:
            query = urlencode({name: value.format(**asked) for name, value in parameters.items()})
            statuses.append((await browser.get(f"{asked['redirect_uri']}?{query}")).status_code)
    return await flow, asked, statuses


async def test_the_browser_brings_a_code_for_which_only_this_process_has_the_verifier() -> None:
    answers = Answers({"/token": [tokens()]})
    found, asked, _ = await signed_in(answers, {"code": "c", "state": "{state}", "iss": ISSUER})
    assert found.refresh_token == "second"
    [form] = answers.sent
    digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
    assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid email offline_access"
    assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
    assert (form["code"], form["redirect_uri"], form["client_id"]) == ("c", asked["redirect_uri"], "cli")


async def test_what_other_pages_send_to_the_address_is_ignored() -> None:
    answers = Answers({"/token": [tokens()]})
    _, _, statuses = await signed_in(
        answers,
        {"code": "theirs", "state": "another"},
        {"code": "theirs"},
        {"error": "access_denied"},
        {"code": "mine", "state": "{state}"},
    )
    assert (statuses, answers.sent[0]["code"]) == ([404, 404, 404, 200], "mine")


async def test_a_denial_and_an_answer_of_another_issuer_end_the_sign_in() -> None:
    with pytest.raises(CommandFailure, match="was denied"):
        await signed_in(Answers({}), {"error": "access_denied", "state": "{state}"})
    with pytest.raises(CommandFailure, match="another identity provider"):
        await signed_in(Answers({}), {"code": "c", "state": "{state}", "iss": "https://evil.example.com"})
