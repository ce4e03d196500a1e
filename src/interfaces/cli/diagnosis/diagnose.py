"""Runs the checks in causal order: earlier faults explain later ones."""

import asyncio
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from domain.errors import ServiceError
from infrastructure.settings import Settings, SettingsError, load_settings, unknown_variables
from interfaces.cli.connecting import RunningService, announced_service, running_service
from interfaces.cli.diagnosis.configuration import configuration_findings, secret_key_is_lost
from interfaces.cli.diagnosis.external_secrets import external_secret_findings
from interfaces.cli.diagnosis.finding import Finding, problem, warning, well
from interfaces.cli.diagnosis.machine import (
    containers_finding,
    home_findings,
    home_is_usable,
    look_at_containers,
    look_at_sandbox,
    machine_findings,
    sandbox_finding,
)
from interfaces.cli.diagnosis.reach import port_finding, reach_findings, shown_address
from interfaces.cli.diagnosis.service import (
    agent_findings,
    organization_provider_findings,
    provider_findings,
    readiness_finding,
    server_findings,
)
from interfaces.cli.diagnosis.siem import siem_findings
from interfaces.cli.diagnosis.storage import Report, can_be_opened, database_findings, look_at_database
from interfaces.cli.failures import CommandFailure
from interfaces.cli.session import Connect

Look = Callable[[Settings], Report]


def _has_extra() -> bool:
    return find_spec("pydantic_ai") is not None


async def diagnose(
    connect: Connect,
    *,
    remark: Callable[[str], None],
    look: Look = look_at_database,
    has_extra: Callable[[], bool] = _has_extra,
) -> list[Finding]:
    """All findings. With DRAGOMAN_URL the service is checked, not this machine."""
    try:
        settings = load_settings()
    except SettingsError as exc:
        return [problem("settings", str(exc), "Correct the environment.")]
    findings = [well("settings", "can be used")]
    findings += (warning("settings", text, "Correct or remove it.") for text in unknown_variables())
    if settings.url is not None:
        findings.append(well("service", shown_address(settings.url)))
        return findings + await _through_service(
            connect, remark=remark, without_key=frozenset(), has_extra=lambda: True
        )
    findings += machine_findings(settings.home)
    findings.append(sandbox_finding(await asyncio.to_thread(look_at_sandbox, settings), settings.mcp_sandbox))
    found, words = await look_at_containers(settings)
    findings.append(containers_finding(settings, found=found, words=words))
    findings += home_findings(settings.home)
    findings += configuration_findings(settings)
    findings += provider_findings(_keys(settings), _base_urls(settings))
    findings += await reach_findings(settings)
    running = await running_service(settings.home)
    findings += _service_findings(settings, running)
    findings += await external_secret_findings(settings)
    findings += await siem_findings(settings, None if running is None else running.url)
    if settings.home.exists() and not home_is_usable(settings.home):
        return findings
    report = await asyncio.to_thread(look, settings)
    findings += database_findings(report)
    if running is None and not settings.home.exists():
        return findings
    if running is None and (secret_key_is_lost(settings) or not can_be_opened(report)):
        detail = "not checked: no service runs, and opening HOME here would change it or fail"
        findings.append(warning("service", detail, "Fix the problems above, then check again."))
        return findings
    return findings + await _through_service(
        connect,
        remark=remark,
        without_key=_without_key(settings),
        has_extra=has_extra,
        is_shared=settings.postgres_url is not None,
    )


async def _through_service(
    connect: Connect,
    *,
    remark: Callable[[str], None],
    without_key: frozenset[str],
    has_extra: Callable[[], bool],
    is_shared: bool = False,
) -> list[Finding]:
    """With `is_shared` HOME may be that of a worker, which has no key."""
    findings: list[Finding] = []
    try:
        async with connect(worker=False) as api:
            findings.append(await readiness_finding(api))
            findings += await agent_findings(api, without_key=without_key)
            findings += await organization_provider_findings(api, has_extra=has_extra)
            findings += await server_findings(api, remark=remark)
    except CommandFailure as failure:
        findings.append(problem("service", failure.message, "Further checks were not possible."))
    except ServiceError as failure:
        if is_shared and failure.code == "admin_key_missing":
            detail = "not checked: no service runs on HOME, and like that of a worker it has no admin key"
            return [warning("service", detail, "Check where a service runs, or set DRAGOMAN_API_KEY.")]
        findings.append(problem("service", failure.detail, "Further checks were not possible."))
    return findings


def _service_findings(settings: Settings, running: RunningService | None) -> Iterator[Finding]:
    if running is not None:
        yield well("service", f"running at {running.url} (pid {running.pid})")
        return
    announced = announced_service(settings.home)
    if announced is not None:
        yield warning(
            "service",
            f"{settings.home / 'serve.json'} names {announced.url} (pid {announced.pid}), which does not answer",
            "Start it again with `dragoman serve`.",
        )
    else:
        yield well("service", "not running; commands open the data directory themselves")
    if (finding := port_finding(settings.host, settings.port)) is not None:
        yield finding


def _keys(settings: Settings) -> dict[str, bool]:
    return {"openai": settings.openai_api_key is not None, "anthropic": settings.anthropic_api_key is not None}


def _base_urls(settings: Settings) -> dict[str, str | None]:
    return {"openai": settings.openai_base_url, "anthropic": settings.anthropic_base_url}


def _without_key(settings: Settings) -> frozenset[str]:
    """Custom endpoints may need no key."""
    keys, base_urls = _keys(settings), _base_urls(settings)
    return frozenset(name for name, has_key in keys.items() if not has_key and base_urls[name] is None)
