"""`dragoman mcp`: installing, enabling and importing servers."""

import json
from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.failures import FAILED, BadUsage, CommandFailure
from interfaces.cli.mcp_view import show_outcome
from interfaces.cli.session import JsonFlag, session_of
from interfaces.client_files import listed_servers, plain_json
from interfaces.http.mcp_servers.views import ImportedEntryView, ServerStatusView, TestResultView


def install_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Install a server (npm, python, oci or copied) and test it. Afterwards it starts without
    network access. Exit code 1 if it was not installed."""
    session = session_of(context)

    async def install(api: ServiceApi) -> None:
        from interfaces.cli.installing import installed

        document = await installed(api, session.terminal, slug)
        if as_json:
            session.terminal.json(document)
            return
        try:
            outcome = read_as(TestResultView, await api.post(path_to("mcp-servers", slug, "test")))
        except CommandFailure as failure:
            session.terminal.note(f"{slug} was not tested: {failure.message}")
        else:
            show_outcome(session.terminal, slug, outcome)

    session.perform(install)


def uninstall_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Uninstall a server, or cancel its installation. It stays registered."""
    session = session_of(context)

    async def uninstall(api: ServiceApi) -> None:
        before = read_as(ServerStatusView, await api.get(path_to("mcp-servers", slug, "status")))
        document = await api.post(path_to("mcp-servers", slug, "uninstall"))
        if before["installed_version"] is None and before["install"] is None:
            session.terminal.note(
                f"{slug} is not installed, so nothing changed. It stays registered; `dragoman mcp delete {slug}` deletes it."
            )
        else:
            session.terminal.note(f"{slug} is uninstalled. It stays registered.")
        if as_json:
            session.terminal.json(document)

    session.perform(uninstall)


def enable_server(context: typer.Context, slug: ServerArgument) -> None:
    """Enable a server for runs."""
    _switch(context, slug, enabled=True)


def disable_server(context: typer.Context, slug: ServerArgument) -> None:
    """Disable a server for runs. Its connections close after their calls."""
    _switch(context, slug, enabled=False)


def _switch(context: typer.Context, slug: str, *, enabled: bool) -> None:
    session = session_of(context)

    async def switch(api: ServiceApi) -> None:
        await api.patch(path_to("mcp-servers", slug), {"enabled": enabled})
        session.terminal.note(f"{slug} is {'enabled' if enabled else 'disabled'}.")

    session.perform(switch)


def import_servers(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file with mcpServers.")],
    as_json: JsonFlag = False,
) -> None:
    """Register the servers of a desktop client's file. Nothing is installed or started. Exit
    code 1 if no server could be registered."""
    session = session_of(context)
    body: JsonObject = {"mcpServers": _servers_in(file)}

    async def import_all(api: ServiceApi) -> int:
        document = await api.post(path_to("mcp-servers", "import"), body)
        entries = entries_of(ImportedEntryView, document)
        if as_json:
            session.terminal.json(document)
        else:
            session.terminal.table(
                ("name", "slug", "outcome", "kind", "remarks"),
                [
                    (entry["name"], entry["slug"], entry["outcome"], entry["kind"] or "", "; ".join(entry["remarks"]))
                    for entry in entries
                ],
                empty=f"There are no servers in {file}.",
            )
        for entry in entries:
            if entry["needs_install"]:
                session.terminal.note(f"{entry['slug']} must be installed: dragoman mcp install {entry['slug']}")
        return FAILED if entries and all(entry["outcome"] == "skipped" for entry in entries) else 0

    session.perform(import_all, creates=True)


def _servers_in(file: Path) -> dict[str, JsonValue]:
    try:
        document: JsonValue = json.loads(plain_json(file.read_text(encoding="utf-8-sig")))
    except OSError as exc:
        raise BadUsage(f"{file} cannot be read: {exc.strerror}.") from exc
    except (ValueError, RecursionError) as exc:
        # Only the position: the file contains secrets.
        place = f" (line {exc.lineno}, column {exc.colno})" if isinstance(exc, json.JSONDecodeError) else ""
        raise BadUsage(f"{file} is not JSON{place}.") from exc
    found = listed_servers(document)
    if found is None:
        raise BadUsage(f"{file} has no object `mcpServers`.")
    return found
