"""Checks of the SIEM: whether its address answers, and how long audit entries wait."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import httpx

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, State, problem, warning, well
from interfaces.cli.diagnosis.reach import PATIENCE_S, shown_address

LATE_S = 10.0
"""Entries are sealed each second and sent every other one; a receiver may take seconds to
answer."""
_SOON_S = 5.0
_LAG = "dragoman_siem_lag_seconds "
_PORTS = {"http": 80, "https": 443}


async def siem_findings(
    settings: Settings, service_url: str | None, *, client: httpx.AsyncClient | None = None
) -> list[Finding]:
    """Nothing without a SIEM. `service_url` is that of the running service, if there is one."""
    if settings.siem_url is None:
        return []
    findings = [await _reached(settings.siem_url)]
    if service_url is not None:
        async with client or httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as opened:
            lag_s = await _lag_s(opened, settings, service_url)
            findings.append(_lag_finding(lag_s, is_reached=findings[0].state is State.OK))
    return findings


async def _reached(url: str) -> Finding:
    """Nothing is sent: every message would be an event there."""
    check, parts, shown = "siem", urlsplit(url), shown_address(url)
    if parts.scheme == "syslog+udp":
        return well(check, f"{shown}; whether it receives datagrams cannot be seen")
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _PORTS[parts.scheme])
    except (OSError, TimeoutError):
        return problem(
            check, f"{shown} does not answer", "Check DRAGOMAN_SIEM_URL. Audit entries wait until it answers."
        )
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return well(check, f"{shown} takes connections")


async def _lag_s(client: httpx.AsyncClient, settings: Settings, service_url: str) -> float | None:
    token = settings.metrics_token
    headers = {} if token is None else {"Authorization": f"Bearer {token.get_secret_value()}"}
    try:
        answer = await client.get(f"{service_url}/metrics", headers=headers)
    except httpx.HTTPError:
        return None
    return next((float(line.removeprefix(_LAG)) for line in answer.text.splitlines() if line.startswith(_LAG)), None)


def _lag_finding(lag_s: float | None, *, is_reached: bool) -> Finding:
    check = "siem lag"
    if lag_s is None:
        return warning(
            check, "cannot be read from /metrics of the service", "Set DRAGOMAN_METRICS_TOKEN as the service has it."
        )
    if lag_s > (LATE_S if is_reached else 0):
        advice = "The service's log says why the SIEM does not accept them. None is skipped."
        return warning(check, f"the oldest audit entry has waited for {lag_s:.0f} s", advice)
    if not is_reached:
        return well(check, "no audit entry waits yet")
    if lag_s > _SOON_S:
        return well(check, f"the oldest audit entry has waited for {lag_s:.0f} s; up to {LATE_S:.0f} s are usual")
    return well(check, "audit entries are sent as they come")
