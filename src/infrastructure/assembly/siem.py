"""Builds what sends audit entries to a receiver outside."""

from importlib.metadata import version
from urllib.parse import urlsplit

from application.audit.forward_audit import ForwardAudit
from application.audit.ports import AuditChain, AuditForwards, AuditReceiver, ForwardTurn
from application.system.ports import Clock
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metered_audit_receiver import MeteredAuditReceiver
from infrastructure.persistence.engine.postgres.url import library_url
from infrastructure.runtime.setting_values import syslog_address
from infrastructure.secrets.redaction import Redactor
from infrastructure.settings import Settings


def forward_audit(
    settings: Settings,
    *,
    proxies: Proxies,
    redactor: Redactor,
    forwards: AuditForwards,
    audit_chain: AuditChain,
    clock: Clock,
    instruments: Instruments,
) -> ForwardAudit | None:
    """None without a receiver."""
    if settings.siem_url is None:
        return None
    receiver = _receiver(settings, settings.siem_url, proxies, redactor, clock)
    return ForwardAudit(
        forwards=forwards,
        chain=audit_chain,
        receiver=MeteredAuditReceiver(receiver, instruments=instruments),
        turn=_turn(settings),
        clock=clock,
    )


def unsent_audit(settings: Settings, *, forwards: AuditForwards) -> AuditForwards | None:
    """Where the metrics read how long entries wait; None without a receiver."""
    return None if settings.siem_url is None else forwards


def _receiver(settings: Settings, url: str, proxies: Proxies, redactor: Redactor, clock: Clock) -> AuditReceiver:
    from infrastructure.http.client import HttpClients
    from infrastructure.siem.http_receiver import HttpAuditReceiver
    from infrastructure.siem.ocsf import OcsfEvents
    from infrastructure.siem.syslog_receiver import SyslogAuditReceiver
    from infrastructure.webhooks.http_sender import HttpWebhookSender

    events = OcsfEvents(redactor=redactor, product_version=version("dragoman"))
    address = syslog_address(url)
    if address is not None:
        return SyslogAuditReceiver(address=address, events=events, ca_file=settings.siem_ca_file)
    sender = HttpWebhookSender(
        # The operator's receiver may be inside the network; no other private address is requested
        # (ADR 0083).
        egress=EgressPolicy([urlsplit(url).hostname or ""]),
        user_agent=f"dragoman/{version('dragoman')}",
        clock=clock,
        http=HttpClients(proxies, ca_file=settings.siem_ca_file),
    )
    return HttpAuditReceiver(
        url=url, headers=settings.siem_header_values, form=settings.siem_format, events=events, sender=sender
    )


def _turn(settings: Settings) -> ForwardTurn:
    if settings.postgres_url is None:
        return InProcessSweepLock()
    from infrastructure.persistence.engine.postgres.sweep_lock import FORWARD_KEY, PostgresSweepLock

    return PostgresSweepLock(library_url(settings.postgres_url), key=FORWARD_KEY)
