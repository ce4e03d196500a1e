"""Webhooks over real HTTP: what a receiver can verify, and what of receivers and addresses is
refused."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import httpx
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from domain.webhooks.delivery import Attempt, SendFailure
from domain.webhooks.signing import signed_headers, signing_keys
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.webhooks.http_sender import HttpWebhookSender
from tests.doubles.surroundings import FixedClock
from tests.integration.webhooks.raw_servers import Chatty, Endless, Silent, listening
from tests.integration.webhooks.receiver import receiving
from tests.webhook_builders import a_signing_secret

HERE = EgressPolicy(["127.0.0.1/32"])
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Resolves(AbstractResolver):
    """Every name to this machine."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0),
        ]

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def a_sender(
    egress: EgressPolicy = HERE, *, resolver: AbstractResolver | None = None, timeout_s: float = 60.0
) -> AsyncIterator[HttpWebhookSender]:
    sender = HttpWebhookSender(
        egress=egress, user_agent="dragoman/test", clock=FixedClock(NOW), resolver=resolver, timeout_s=timeout_s
    )
    try:
        yield sender
    finally:
        await sender.close()


async def sent(url: str, egress: EgressPolicy = HERE, **more: float) -> Attempt:
    async with a_sender(egress, **more) as sender:  # type: ignore[arg-type]
        return await sender.send(url, {"webhook-id": "whk_1"}, b"{}")


@pytest.mark.requirement("E7")
async def test_a_receiver_verifies_the_signature_with_code_that_is_not_ours() -> None:
    body = '{"type":"run.completed","data":{"output":"Größe: 5 €"}}'.encode()
    former, present = a_signing_secret(1), a_signing_secret(2)
    async with receiving() as receiver, a_sender() as sender:
        keys = (*signing_keys(present), *signing_keys(former))
        # The verifier takes nothing that was signed more than five minutes ago.
        headers = signed_headers("whk_1", datetime.now(UTC), body, keys)
        attempt = await sender.send(receiver.url, headers, body)
    assert attempt == Attempt(status=204)
    [got] = receiver.received
    assert (got.path, got.headers["Content-Type"], got.headers["User-Agent"]) == (
        "/hook",
        "application/json",
        "dragoman/test",
    )
    for secret in (present, former):  # during a rotation the old key verifies as well
        assert Verifier(secret).verify(got.body, got.headers)["data"]["output"] == "Größe: 5 €"
    with pytest.raises(WebhookVerificationError):
        Verifier(a_signing_secret(3)).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(present).verify(got.body + b" ", got.headers)


@pytest.mark.requirement("E7", "B16", "S4")
async def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    async with receiving() as inside:
        async with receiving(lambda _: web.Response(status=307, headers={"location": inside.url})) as receiver:
            attempt = await sent(receiver.url)
        assert inside.received == []
    assert (attempt.status, attempt.is_final) == (307, True)
    assert attempt.error is not None
    assert inside.url not in attempt.error


@pytest.mark.requirement("E7", "B16", "S4")
async def test_a_private_address_is_not_requested_however_it_is_named() -> None:
    async with receiving() as receiver:
        port = receiver.url.rsplit(":", 1)[1]
        for url in (
            receiver.url,
            f"http://localhost:{port}",
            f"http://[::ffff:127.0.0.1]:{port}",
            f"http://2130706433:{port}",
        ):
            assert await sent(url, EgressPolicy()) == Attempt(failure=SendFailure.BLOCKED)
        # The address is looked at when the name is resolved, by the very resolver that connects: no
        # rebinding.
        async with a_sender(EgressPolicy(), resolver=Resolves()) as sender:
            refused = await sender.send(f"http://public.example:{port}", {}, b"{}")
        assert refused == Attempt(failure=SendFailure.BLOCKED)
        assert receiver.received == []
        async with a_sender(resolver=Resolves()) as sender:
            assert await sender.send(f"http://public.example:{port}", {}, b"{}") == Attempt(status=204)


@pytest.mark.requirement("E7", "B16", "S4")
@pytest.mark.parametrize(
    "host",
    [
        "127\u30020\u30020\u30021",
        "127\uff0e0\uff0e0\uff0e1",
        "127\uff610\uff610\uff611",
        "\uff11\uff12\uff17.0.0.1",
        "\u2460\u2461\u2466.0.0.1",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "0x7f\u30021",
        "0177.0.0.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
)
async def test_no_spelling_of_a_private_address_is_requested_nor_told_from_one_where_nothing_is(host: str) -> None:
    async with receiving() as receiver:
        port = httpx.URL(receiver.url).port
        answered = await sent(f"http://{host}:{port}/hook", EgressPolicy())
        closed = await sent(f"http://{host}:1/hook", EgressPolicy())
    assert answered == closed == Attempt(failure=SendFailure.BLOCKED)
    assert receiver.received == []


@pytest.mark.requirement("E7", "B16", "S4")
async def test_a_client_with_the_guard_connects_to_no_private_address_even_if_its_url_was_not_looked_at() -> None:
    async with receiving() as receiver, HttpClients().create(egress=EgressPolicy()) as client:
        with pytest.raises(httpx.ConnectError) as refused:
            await client.post(receiver.url)
    assert isinstance(refused.value.__cause__, aiohttp.ClientConnectorError)
    assert isinstance(refused.value.__cause__.os_error, EgressBlockedError)
    assert receiver.received == []


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("url", ["ftp://example.com/", "http://user:pw@example.com/", "http:///x", "nonsense"])
async def test_only_http_urls_without_credentials_are_requested(url: str) -> None:
    assert await sent(url) == Attempt(failure=SendFailure.BLOCKED)


@pytest.mark.requirement("E7", "B16", "S4")
async def test_a_receiver_that_does_not_answer_is_given_up() -> None:
    with listening(Silent) as port:
        assert await sent(f"http://127.0.0.1:{port}/", timeout_s=0.2) == Attempt(failure=SendFailure.TIMEOUT)


@pytest.mark.requirement("E7", "B16", "S4")
async def test_an_answer_without_end_is_not_read_to_it() -> None:
    with listening(Endless) as port:
        assert await sent(f"http://127.0.0.1:{port}/") == Attempt(status=200)


@pytest.mark.requirement("E7")
async def test_what_is_not_there_and_what_is_not_http_are_told_apart() -> None:
    with listening(Chatty) as port:
        assert await sent(f"http://127.0.0.1:{port}/") == Attempt(failure=SendFailure.BROKEN)
        assert await sent(f"https://127.0.0.1:{port}/") == Attempt(failure=SendFailure.INSECURE)
    assert await sent(f"http://127.0.0.1:{port}/") == Attempt(failure=SendFailure.UNREACHABLE)


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        pytest.param(
            format_datetime(NOW.replace(microsecond=0) + timedelta(seconds=90), usegmt=True), 90.0, id="a date to come"
        ),
        pytest.param(format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0, id="a date gone by"),
        ("soon", None),
        ("-5", None),
        ("9" * 400, None),
        ("Mon, 01 Jan 2024 00:00:00 +9999999999999999999", None),
    ],
)
async def test_when_to_come_again_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    async with receiving(lambda _: web.Response(status=503, headers={"retry-after": value})) as receiver:
        attempt = await sent(receiver.url)
    assert attempt.status == 503
    assert attempt.retry_after_s == (None if seconds is None else pytest.approx(seconds, abs=1))
