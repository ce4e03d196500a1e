"""Installs an MCP server and waits for it."""

import asyncio

from domain.json_value import JsonObject
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import CommandFailure
from interfaces.cli.install_view import InstallView
from interfaces.cli.terminal import Terminal
from interfaces.http.mcp_servers.views import ServerStatusView

POLL_S = 0.2


async def installed(api: ServiceApi, terminal: Terminal, slug: str) -> JsonObject:
    """The status of the installed server. Raises CommandFailure with the reason of a failure."""
    document = await api.post(path_to("mcp-servers", slug, "install"))
    with InstallView(terminal, slug) as view:
        while (status := read_as(ServerStatusView, document))["state"] == "installing":
            if status["install"] is not None:
                view.show(status["install"])
            await asyncio.sleep(POLL_S)
            document = await api.get(path_to("mcp-servers", slug, "status"))
    if status["installed_version"] is None:
        raise CommandFailure(
            f"{slug} was not installed: {status['last_error'] or 'the installation was stopped.'} "
            f"`dragoman mcp logs {slug}` shows what was printed."
        )
    terminal.note(f"Installed {slug} {status['installed_version']}.")
    return document
