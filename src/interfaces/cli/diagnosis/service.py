"""Checks through the service: its readiness, the models that agents use, their providers, and every
MCP server."""

import asyncio
from collections.abc import Callable, Iterator

from domain.model_providers.provider import ProviderKind, ProviderWire, is_native
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.diagnosis.finding import Finding, problem, warning, well
from interfaces.cli.diagnosis.reach import shown_address
from interfaces.cli.failures import ApiProblem, CommandFailure
from interfaces.cli.mcp_view import is_quarantined
from interfaces.cli.terminal import duration
from interfaces.http.agents.views import AgentView
from interfaces.http.mcp_servers.views import McpServerView, PinnedToolView, ServerStatusView, TestResultView
from interfaces.http.model_providers.views import ModelProviderView

_AT_ONCE = 4
_TO_DO = {
    "not_installed": "Install it: `dragoman mcp install {slug}`.",
    "needs_auth": "Authorize it: `dragoman mcp authorize {slug}`.",
}
"""Remedies for states in which a test is pointless."""


async def readiness_finding(api: ServiceApi) -> Finding:
    """The service's readiness: database, schema, run queue, worker."""
    try:
        await api.get("/health/ready")
    except ApiProblem as failure:
        return problem("readiness", failure.message, "GET /health/ready says more; the service's log says why.")
    return well("readiness", "the service can do its work")


async def agent_findings(api: ServiceApi, *, without_key: frozenset[str]) -> list[Finding]:
    """Agents whose models have no key. `without_key` are the environment's providers that lack a
    required key; a provider of the organization replaces the one of its name."""
    agents = entries_of(AgentView, await listed(api, path_to("agents")))
    providers = entries_of(ModelProviderView, await listed(api, path_to("model-providers")))
    missing = without_key - {provider["name"] for provider in providers}
    return [
        problem(
            "agent",
            f"{agent['name']} uses {model}, and there is no key for {provider}",
            f"Set {provider.upper()}_API_KEY for the service, add a provider {provider} to the organization"
            f" (`dragoman provider add {provider} --kind {provider}`), or give the agent another model.",
        )
        for agent in agents
        if agent["enabled"]
        for model in (agent["model"], *agent["fallback_models"])
        if (provider := model.partition(":")[0]) in missing
    ]


async def organization_provider_findings(api: ServiceApi, *, has_extra: Callable[[], bool]) -> list[Finding]:
    """The organization's providers: packages that this installation lacks, and what a provider says
    that does not list its models. Costs no tokens."""
    providers = entries_of(ModelProviderView, await listed(api, path_to("model-providers")))
    complete = has_extra()
    places = asyncio.Semaphore(_AT_ONCE)

    async def tested(provider: ModelProviderView) -> Finding:
        native = is_native(ProviderKind(provider["kind"]), ProviderWire(provider["wire"]), provider["base_url"])
        if native and not complete:
            return problem(
                "model provider",
                f"{provider['name']} needs the extra `providers`, which is not installed",
                "Install it (pip install 'dragoman[providers]') and restart the service.",
            )
        async with places:
            return await _provider_finding(api, provider["name"])

    return list(await asyncio.gather(*map(tested, providers)))


async def _provider_finding(api: ServiceApi, name: str) -> Finding:
    check = f"model provider {name}"
    try:
        await api.get(path_to("model-providers", name, "models"))
    except CommandFailure as failure:
        return warning(check, failure.message, f"`dragoman provider test {name}` says whether its models answer.")
    return well(check, "lists its models")


async def server_findings(api: ServiceApi, *, remark: Callable[[str], None]) -> list[Finding]:
    """Tests every enabled MCP server, a few at a time."""
    servers = entries_of(McpServerView, await listed(api, path_to("mcp-servers")))
    places = asyncio.Semaphore(_AT_ONCE)

    async def tested(server: McpServerView) -> Finding:
        if not server["enabled"]:
            return well(f"mcp server {server['slug']}", "disabled")
        async with places:
            remark(f"Testing the MCP server {server['slug']} …")
            return await _server_finding(api, server["slug"])

    return list(await asyncio.gather(*(tested(server) for server in servers)))


async def _server_finding(api: ServiceApi, slug: str) -> Finding:
    check = f"mcp server {slug}"
    try:
        status = read_as(ServerStatusView, await api.get(path_to("mcp-servers", slug, "status")))
        if (advice := _TO_DO.get(status["state"])) is not None:
            return problem(check, status["state"].replace("_", " "), advice.format(slug=slug))
        outcome = read_as(TestResultView, await api.post(path_to("mcp-servers", slug, "test")))
    except CommandFailure as failure:
        return problem(check, failure.message, f"See `dragoman mcp show {slug}`.")
    if not outcome["ok"]:
        detail = outcome["error"]["detail"] if outcome["error"] else "it does not work"
        return problem(
            check,
            f"{status['state']}; the test fails: {detail}",
            f"`dragoman mcp logs {slug}` shows what it printed; `dragoman mcp show {slug}` how it is started.",
        )
    if outcome["skipped"]:
        names = ", ".join(tool["name"] for tool in outcome["skipped"])
        return warning(check, f"tools that cannot be used: {names}", f"`dragoman mcp test {slug}` says why.")
    held_back = [
        tool["name"]
        for tool in entries_of(PinnedToolView, await api.get(path_to("mcp-servers", slug, "tools")))
        if is_quarantined(tool)
    ]
    if held_back:
        return warning(
            check,
            f"tools that changed and wait for a person: {', '.join(held_back)}",
            f"`dragoman mcp approve {slug}` shows them.",
        )
    if outcome["declared"]:
        return well(check, f"not tested: it answers calls only; {len(outcome['tools'])} declared tools")
    return well(
        check,
        f"{status['state']}; the test finds {len(outcome['tools'])} tools, {outcome['protocol_version']}, {duration(outcome['latency_ms'])}",
    )


def provider_findings(keys: dict[str, bool], base_urls: dict[str, str | None]) -> Iterator[Finding]:
    """The providers of this environment."""
    for provider, has_key in keys.items():
        if has_key:
            yield well("model provider", f"{provider} has a key")
        elif (base_url := base_urls[provider]) is not None:
            yield well("model provider", f"{provider} is at {shown_address(base_url)}, without a key")
    if not any(keys.values()) and not any(base_urls.values()):
        yield warning(
            "model provider",
            "no provider of the environment has a key",
            "Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or add providers with `dragoman provider add`; without any, only"
            " scripted models answer.",
        )
