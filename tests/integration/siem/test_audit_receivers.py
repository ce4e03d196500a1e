"""Audit entries on the wire: HTTP, and syslog over TCP, TLS and UDP, to receivers on this
machine."""

import json
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from domain.audit.chain import Link
from domain.audit.chain_check import StoredLink
from domain.audit.event import AuditAction
from domain.json_value import JsonObject
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.secrets.redaction import Redactor
from infrastructure.siem.http_receiver import HttpAuditReceiver
from infrastructure.siem.ocsf import OcsfEvents
from infrastructure.siem.syslog_address import SyslogAddress
from infrastructure.siem.syslog_receiver import CLOSE_S, SyslogAuditReceiver
from infrastructure.webhooks.http_sender import HttpWebhookSender
from tests.builders import an_audit_event
from tests.doubles.audit_chain import entry_of
from tests.doubles.surroundings import FixedClock
from tests.integration.siem.receivers import certificate, deaf_receiver, syslog_receiver
from tests.integration.tracing.receivers import refusing_address
from tests.integration.webhooks.receiver import receiving

pytestmark = pytest.mark.requirement("K8")

EVENTS = OcsfEvents(redactor=Redactor(), product_version="1")
SYSLOG = re.compile(rb"<(\d+)>1 (\S+Z) (\S+) dragoman - (\S+) - \xef\xbb\xbf(.*)", re.DOTALL)


def links(*actions: AuditAction) -> list[StoredLink]:
    entries = [entry_of(an_audit_event(number, action=action)) for number, action in enumerate(actions, 1)]
    return [
        StoredLink(
            link=Link(number=number, event_id=str(entry[0]), key_id="k", seal="00", sealed_at=1_800_000_000_000_000),
            entry=entry,
        )
        for number, entry in enumerate(entries, 1)
    ]


TWO = links(AuditAction.AGENT_CREATED, AuditAction.SESSION_HALTED)


class OneTooLarge(OcsfEvents):
    """The event of number 2 fits in no datagram."""

    def __init__(self) -> None:
        super().__init__(redactor=Redactor(), product_version="1")

    def of(self, link: StoredLink) -> JsonObject:
        event = super().of(link)
        return event | {"message": "x" * 70_000} if link.link.number == 2 else event


def codes(events: list[bytes]) -> list[str]:
    return [json.loads(event)["metadata"]["event_code"] for event in events]


@asynccontextmanager
async def over_http(
    url: str, *, form: str = "ndjson", egress: EgressPolicy | None = None, ca_file: Path | None = None
) -> AsyncIterator[HttpAuditReceiver]:
    sender = HttpWebhookSender(
        egress=egress or EgressPolicy(["127.0.0.1"]),
        user_agent="dragoman/1",
        clock=FixedClock(),
        http=HttpClients(ca_file=ca_file),
    )
    receiver = HttpAuditReceiver(
        url=url, headers={"authorization": "Splunk token"}, form=form, events=EVENTS, sender=sender
    )
    try:
        yield receiver
    finally:
        await receiver.close()


def over_syslog(
    transport: str, port: int, ca_file: Path | None = None, *, close_s: float = CLOSE_S
) -> SyslogAuditReceiver:
    assert transport in ("tcp", "tls", "udp")
    address = SyslogAddress(transport=transport, host="127.0.0.1", port=port)  # type: ignore[arg-type]
    return SyslogAuditReceiver(address=address, events=EVENTS, ca_file=ca_file, close_s=close_s)


async def test_a_batch_over_http_is_one_request_with_an_event_a_line_and_the_headers() -> None:
    async with receiving() as siem, over_http(siem.url) as receiver:
        assert (await receiver.send(TWO)).failure is None

        [request] = siem.received
    assert codes(request.body.splitlines()) == ["agent.created", "session.halted"]
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["authorization"] == "Splunk token"
    assert headers["content-type"] == "application/x-ndjson"


async def test_a_batch_can_be_an_array() -> None:
    async with receiving() as siem, over_http(siem.url, form="json") as receiver:
        await receiver.send(TWO)

        [request] = siem.received
    assert [event["metadata"]["sequence"] for event in json.loads(request.body)] == [1, 2]


async def test_a_status_other_than_success_accepts_nothing() -> None:
    answers = [
        lambda _: web.Response(status=503, headers={"retry-after": "7"}),
        lambda _: web.Response(status=413),
        lambda _: web.Response(status=302, headers={"location": "http://127.0.0.1:1/"}),
    ]
    async with receiving(*answers) as siem, over_http(siem.url) as receiver:
        busy, too_large, moved = [await receiver.send(TWO) for _ in answers]

    assert busy.failure is not None
    assert busy.retry_after_s == 7
    assert too_large.too_large
    assert moved.failure is not None
    assert len(siem.received) == 3


async def test_an_address_that_the_operator_did_not_name_is_not_requested() -> None:
    async with receiving() as siem, over_http(siem.url, egress=EgressPolicy(["siem.example.com"])) as receiver:
        assert (await receiver.send(TWO)).failure is not None

    assert siem.received == []


async def test_trusted_certificates_that_cannot_be_loaded_are_a_failure_like_others(tmp_path: Path) -> None:
    damaged = tmp_path / "siem.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    for ca_file in (damaged, tmp_path / "absent.pem"):
        async with over_http("https://127.0.0.1:1/", ca_file=ca_file) as receiver:
            assert (await receiver.send(TWO)).failure is not None


async def test_a_batch_over_tcp_has_messages_of_rfc_5424_with_counted_octets() -> None:
    with syslog_receiver() as siem:
        assert (await over_syslog("tcp", siem.port).send(TWO)).failure is None

    first, second = [SYSLOG.fullmatch(message) for message in siem.messages()]
    assert first is not None
    assert second is not None
    assert [int(each[1]) for each in (first, second)] == [13 * 8 + 6, 13 * 8 + 3]
    assert [each[4] for each in (first, second)] == [b"agent.created", b"session.halted"]
    assert codes([first[5], second[5]]) == ["agent.created", "session.halted"]


async def test_a_batch_over_tls_goes_to_the_receiver_with_the_trusted_certificate_only(tmp_path: Path) -> None:
    ca_file, context = certificate(tmp_path)
    with syslog_receiver(context) as siem:
        trusted = await over_syslog("tls", siem.port, ca_file).send(TWO)
        other = await over_syslog("tls", siem.port).send(TWO)

    assert trusted.failure is None
    assert other.failure is not None
    assert "certificate" in other.failure
    assert len(siem.messages()) == 2


async def test_a_connection_that_breaks_accepts_nothing() -> None:
    many = TWO * 2_000
    with syslog_receiver(reads=False) as siem:
        broken = await over_syslog("tcp", siem.port).send(many)
    with refusing_address() as url:
        absent = await over_syslog("tcp", int(url.rpartition(":")[2])).send(TWO)

    assert broken.failure is not None
    assert absent.failure is not None


async def test_a_receiver_that_writes_without_end_is_not_waited_for_longer() -> None:
    with syslog_receiver(writes=True) as siem:
        assert (await over_syslog("tcp", siem.port, close_s=0.2).send(TWO)).failure is None

    assert len(siem.messages()) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what the other end has")
async def test_a_batch_that_waits_on_this_side_is_not_accepted() -> None:
    with deaf_receiver() as port:
        receipt = await over_syslog("tcp", port, close_s=0.2).send(TWO * 200)

    assert receipt.failure is not None


async def test_a_batch_with_an_event_too_large_for_a_datagram_is_refused_before_anything_is_sent() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as siem:
        siem.bind(("127.0.0.1", 0))
        siem.setblocking(False)
        address = SyslogAddress(transport="udp", host="127.0.0.1", port=siem.getsockname()[1])
        receipt = await SyslogAuditReceiver(address=address, events=OneTooLarge()).send(TWO)
        with pytest.raises(BlockingIOError):
            siem.recv(65_536)

    assert receipt.too_large


async def test_datagrams_have_one_message_each() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as siem:
        siem.bind(("127.0.0.1", 0))
        siem.settimeout(30)
        assert (await over_syslog("udp", siem.getsockname()[1]).send(TWO)).failure is None
        received = [SYSLOG.fullmatch(siem.recv(65_536)) for _ in TWO]

    assert [each and each[4] for each in received] == [b"agent.created", b"session.halted"]
