"""Checks of network access: model providers, the tracing backend, and the service's own port."""

import asyncio
import socket
from collections.abc import Awaitable, Iterator, Mapping
from urllib.parse import urlsplit, urlunsplit

import httpx

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, problem, warning, well

PATIENCE_S = 5.0
_ANTHROPIC_VERSION = "2023-06-01"
_REFUSED = (401, 403)


async def reach_findings(settings: Settings, *, client: httpx.AsyncClient | None = None) -> list[Finding]:
    """Checks everything that the settings name, concurrently."""
    async with client or httpx.AsyncClient(timeout=PATIENCE_S) as opened:
        return list(await asyncio.gather(*_questions(opened, settings)))


def _questions(client: httpx.AsyncClient, settings: Settings) -> Iterator[Awaitable[Finding]]:
    if settings.openai_api_key is not None or settings.openai_base_url is not None:
        base = settings.openai_base_url or "https://api.openai.com/v1"
        key = None if settings.openai_api_key is None else settings.openai_api_key.get_secret_value()
        yield _provider(client, "openai", f"{base}/models", {} if key is None else {"Authorization": f"Bearer {key}"})
    if settings.anthropic_api_key is not None or settings.anthropic_base_url is not None:
        base = settings.anthropic_base_url or "https://api.anthropic.com"
        key = None if settings.anthropic_api_key is None else settings.anthropic_api_key.get_secret_value()
        headers = {"anthropic-version": _ANTHROPIC_VERSION, **({} if key is None else {"x-api-key": key})}
        yield _provider(client, "anthropic", f"{base}/v1/models", headers)
    if settings.traces_endpoint is not None:
        yield _collector(client, settings.traces_endpoint, settings.otel_header_values)
    if settings.traces_to_langfuse:
        yield _langfuse(client, settings)


async def _provider(client: httpx.AsyncClient, name: str, url: str, headers: Mapping[str, str]) -> Finding:
    """Any response shows that the provider is reachable; only rejected keys are reported."""
    check = f"model provider {name}"
    if not all(map(_can_be_sent, headers.values())):
        advice = f"Set {name.upper()}_API_KEY to the key alone, as the provider shows it."
        return problem(check, "the key has invalid characters", advice)
    answer = await _answer(client, "GET", url, headers)
    if answer is None:
        advice = "Check the address, this machine's network and its proxies (HTTPS_PROXY)."
        return problem(check, f"{shown_address(url)} does not answer", advice)
    if answer.status_code in _REFUSED:
        return problem(check, f"refuses the key ({answer.status_code})", f"Set {name.upper()}_API_KEY to a valid key.")
    if answer.status_code >= 500:
        return warning(check, f"answers {answer.status_code}", "Calls are retried; look at the provider's status page.")
    return well(check, "answers")


async def _collector(client: httpx.AsyncClient, endpoint: str, headers: Mapping[str, str]) -> Finding:
    check, url = "tracing (OpenTelemetry)", f"{endpoint.rstrip('/')}/v1/traces"
    # An empty export: a Protocol Buffers message without fields is empty.
    sent = {"Content-Type": "application/x-protobuf", **headers}
    if not all(map(_can_be_sent, headers.values())):
        advice = "Correct OTEL_EXPORTER_OTLP_HEADERS; until then traces are lost."
        return warning(check, "a header has invalid characters", advice)
    return _tracing(check, url, await _answer(client, "POST", url, sent), "OTEL_EXPORTER_OTLP_HEADERS")


async def _langfuse(client: httpx.AsyncClient, settings: Settings) -> Finding:
    url = f"{settings.langfuse_url.rstrip('/')}/api/public/projects"
    secret = settings.langfuse_secret_key
    keys = (settings.langfuse_public_key or "", "" if secret is None else secret.get_secret_value())
    answer = await _answer(client, "GET", url, {}, auth=keys)
    return _tracing("tracing (Langfuse)", url, answer, "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")


def _tracing(check: str, url: str, answer: httpx.Response | None, credentials: str) -> Finding:
    lost, url = "Runs continue; their traces are lost.", shown_address(url)
    if answer is None:
        return warning(check, f"{url} does not answer", f"{lost} Check the address and that the backend runs.")
    if answer.status_code in _REFUSED:
        return warning(check, f"{url} refuses the credentials", f"{lost} Check {credentials}.")
    if not answer.is_success:
        return warning(check, f"{url} answers {answer.status_code}", f"{lost} Check the address.")
    return well(check, f"{url} takes traces")


async def _answer(
    client: httpx.AsyncClient, method: str, url: str, headers: Mapping[str, str], *, auth: tuple[str, str] | None = None
) -> httpx.Response | None:
    try:
        return await client.request(method, url, headers=headers, auth=auth)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None


def shown_address(url: str) -> str:
    """An address without possible secrets: user, password, and everything after the path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _can_be_sent(value: str) -> bool:
    return value.isascii() and value.isprintable()


def port_finding(host: str, port: int) -> Finding | None:
    """Whether the port is free. None if the service takes any free port."""
    if port == 0:
        return None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError:
        advice = "Set DRAGOMAN_HOST and DRAGOMAN_PORT, or stop the program that listens there."
        return warning("address", f"nothing could listen on {host} port {port} now", advice)
    return well("address", f"{host} port {port} is free")
