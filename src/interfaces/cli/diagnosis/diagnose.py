"""Runs the checks in the order in which one fault explains the next."""

from collections.abc import Callable

from domain.errors import ServiceError
from infrastructure.settings import Settings, SettingsError, load_settings, unknown_variables
from interfaces.cli.connecting import announced_service, running_service
from interfaces.cli.diagnosis.finding import Finding, error, warning, well
from interfaces.cli.diagnosis.machine import home_findings, machine_findings
from interfaces.cli.diagnosis.service import agent_findings, database_finding, provider_findings, server_findings
from interfaces.cli.failures import CommandFailure
from interfaces.cli.session import Connect


async def diagnose(connect: Connect, *, remark: Callable[[str], None]) -> list[Finding]:
    """Everything that was seen. With DRAGOMAN_URL set, the service and not this machine is looked at."""
    try:
        settings = load_settings()
    except SettingsError as exc:
        return [error("settings", str(exc), "Correct the environment.")]
    findings = [well("settings", "can be used")]
    findings += (warning("settings", text, "Correct or remove it.") for text in unknown_variables())
    providers: frozenset[str] | None = None
    if settings.url is None:
        findings += machine_findings(settings.home)
        findings += home_findings(settings.home)
        findings += provider_findings(_keys(settings), _base_urls(settings))
        providers = _without_key(settings)
        findings.append(await _service_finding(settings))
        if not settings.home.exists():
            return findings
    else:
        findings.append(well("service", settings.url))
    try:
        async with connect(worker=False) as api:
            findings.append(await database_finding(api))
            findings += await agent_findings(api, without_key=providers or frozenset())
            findings += await server_findings(api, remark=remark)
    except CommandFailure as failure:
        findings.append(error("service", failure.message, "Nothing behind it could be looked at."))
    except ServiceError as failure:
        findings.append(error("service", failure.detail, "Nothing behind it could be looked at."))
    return findings


async def _service_finding(settings: Settings) -> Finding:
    running = await running_service(settings.home)
    if running is not None:
        return well("service", f"running at {running.url} (pid {running.pid})")
    announced = announced_service(settings.home)
    if announced is not None:
        return warning(
            "service",
            f"{settings.home / 'serve.json'} names {announced.url} (pid {announced.pid}), which does not answer",
            "Start it anew with `dragoman serve`.",
        )
    return well("service", "not running; commands open the data directory themselves")


def _keys(settings: Settings) -> dict[str, bool]:
    return {"openai": settings.openai_api_key is not None, "anthropic": settings.anthropic_api_key is not None}


def _base_urls(settings: Settings) -> dict[str, str | None]:
    return {"openai": settings.openai_base_url, "anthropic": settings.anthropic_base_url}


def _without_key(settings: Settings) -> frozenset[str]:
    """An endpoint of one's own may do without."""
    keys, base_urls = _keys(settings), _base_urls(settings)
    return frozenset(name for name, has_key in keys.items() if not has_key and base_urls[name] is None)
