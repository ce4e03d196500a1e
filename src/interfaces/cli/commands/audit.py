"""`dragoman audit`: reading and verifying the audit trail."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import Query, ServiceApi, listed, path_to
from interfaces.cli.arguments import RUNS, SERVERS
from interfaces.cli.asked_times import moment
from interfaces.cli.commands.audit_archive import verify_archive
from interfaces.cli.exports import written
from interfaces.cli.failures import FAILED
from interfaces.cli.names import names_by_id
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import duration
from interfaces.http.audit.views import AuditEventView, BrokenLinkView, ChainReportView
from interfaces.http.mcp_servers.views import McpServerView

audit_app = typer.Typer(
    help="Read, export and verify the audit trail.",
    no_args_is_help=True,
    epilog="Example: dragoman audit list --action 'tool.*' --since 2h",
)


@audit_app.callback()
def _audit() -> None:
    """Read, export and verify the audit trail."""


ActorOption = Annotated[
    str | None, typer.Option("--actor", metavar="KEY_ID", help="Only actions of this API key, or of `system`.")
]
ResourceOption = Annotated[str | None, typer.Option("--resource", metavar="ID", help="Only actions on this resource.")]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="Only entries of this run.", autocompletion=RUNS)
]
ToolOption = Annotated[
    str | None, typer.Option("--tool", metavar="NAME", help="Only calls of this tool, by its name for models.")
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="SERVER", help="Only entries of this MCP server, by slug or id.", autocompletion=SERVERS
    ),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="An RFC 3339 time, or how long ago: 30m, 2h, 7d.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only entries before this time, as for --since.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conditions:
    """The filter from the options."""

    actor: str | None
    resource: str | None
    run_id: str | None
    tool: str | None
    server: str | None
    since: str | None
    until: str | None

    async def query(self, api: ServiceApi) -> dict[str, str | int]:
        """The query of the API; a server's slug becomes its id. Raises BadUsage."""
        now = datetime.now(UTC)
        server_id = self.server
        if server_id is not None and not server_id.startswith("mcp_"):
            server_id = read_as(McpServerView, await api.get(path_to("mcp-servers", server_id)))["id"]
        given = {
            "actor": self.actor,
            "resource": self.resource,
            "run_id": self.run_id,
            "tool": self.tool,
            "server_id": server_id,
            "since": None if self.since is None else moment(self.since, now=now),
            "until": None if self.until is None else moment(self.until, now=now, option="--until"),
        }
        return {name: value for name, value in given.items() if value is not None}


@audit_app.command("list", epilog="Example: dragoman audit list --action 'tool.*' --since 2h")
def list_events(
    context: typer.Context,
    *,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="run.started, or a group: tool.*. Repeatable."),
    ] = None,
    actor: ActorOption = None,
    resource: ResourceOption = None,
    run_id: RunOption = None,
    tool: ToolOption = None,
    server: ServerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most entries to list.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """List audit events, newest first."""
    session = session_of(context)
    conditions = _Conditions(
        actor=actor, resource=resource, run_id=run_id, tool=tool, server=server, since=since, until=until
    )

    async def show(api: ServiceApi) -> None:
        page = await _events(api, await conditions.query(api), action or [], limit)
        if as_json:
            session.terminal.json(page)
            return
        events = entries_of(AuditEventView, page)
        names = await names_by_id(api, "key", "agt", "mcp", "wfl") if events else {}
        session.terminal.table(
            ("time", "action", "actor", "tool", "took", "resource", "run"),
            [
                (
                    event["at"],
                    event["action"],
                    names.get(event["actor"], event["actor"]),
                    event["tool"] or "",
                    "" if event["duration_ms"] is None else duration(event["duration_ms"]),
                    names.get(event["resource"], event["resource"]),
                    event["run_id"] or "",
                )
                for event in events
            ],
            empty="There are no such audit events.",
        )
        if page["next_cursor"] is not None:
            session.terminal.note(f"These are the newest {limit}; --limit shows more.")

    session.perform(show)


@audit_app.command("export", epilog="Example: dragoman audit export --since 30d --output audit.ndjson")
def export_events(
    context: typer.Context,
    *,
    action: Annotated[
        str | None, typer.Option("--action", metavar="ACTION", help="run.started, or a group: tool.*.")
    ] = None,
    actor: ActorOption = None,
    resource: ResourceOption = None,
    run_id: RunOption = None,
    tool: ToolOption = None,
    server: ServerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of the terminal.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="No effect: an export has one JSON object per line.")] = False,
) -> None:
    """Print audit events as lines of JSON. They are in the order of their seals, each with its
    number and seal."""
    session = session_of(context)
    conditions = _Conditions(
        actor=actor, resource=resource, run_id=run_id, tool=tool, server=server, since=since, until=until
    )

    async def export(api: ServiceApi) -> None:
        query = await conditions.query(api)
        lines = api.lines(path_to("audit-events", "export"), {**query, **({"action": action} if action else {})})
        if output is None:
            async for line in lines:
                session.terminal.line(line)
            return
        count = await written(lines, output)
        session.terminal.note(f"Wrote {count} audit events to {output}.")

    session.perform(export)


@audit_app.command("verify", epilog="Example: dragoman audit verify && echo untouched")
def verify_trail(
    context: typer.Context,
    archive: Annotated[
        Path | None,
        typer.Option(
            "--archive",
            metavar="DIR",
            help="Check the files that retention wrote to this directory (DRAGOMAN_ARCHIVE_DIR) instead, without a service.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check the chain of seals over the audit trail. Exits 1 if it is broken or cannot be
    checked."""
    session = session_of(context)
    if archive is not None:
        verify_archive(session.terminal, archive, as_json=as_json)
        return

    async def verify(api: ServiceApi) -> int:
        document = await api.get(path_to("audit-events", "verify"))
        report = read_as(ChainReportView, document)
        if as_json:
            session.terminal.json(document)
            return 0 if report["ok"] else FAILED
        session.terminal.fields(
            {
                "checked": f"{report['checked']} events, through number {report['sealed_through']}",
                "pruned": f"through number {report['pruned_through']}" if report["pruned_through"] else "",
                "unsealed": f"{report['unsealed']} events" if report["unsealed"] else "",
                "sealed late": f"{report['sealed_late']} events" if report["sealed_late"] else "",
            }
        )
        if report["first_broken"] is not None:
            session.terminal.line(f"The audit trail is broken: {_in_words(report['first_broken'])}.")
        for unknown in report["unknown_keys"]:
            session.terminal.line(
                f"{unknown['links']} events were sealed with the key {unknown['key_id']}, which is not known: give the secret key"
                " of that time as well (DRAGOMAN_SECRET_KEY, after a comma), and verify again."
            )
        if report["ok"]:
            session.terminal.line("OK: the audit trail is unchanged.")
        return 0 if report["ok"] else FAILED

    session.perform(verify)


def _in_words(broken: BrokenLinkView) -> str:
    """`number 7 (aud_…) was edited`."""
    number = "" if broken["number"] is None else f"number {broken['number']}"
    named = f"{number} ({broken['event_id']})" if number and broken["event_id"] else number or broken["event_id"] or ""
    return _PROBLEMS.get(broken["problem"], "{} is wrong").format(named)


_PROBLEMS = {
    "edited": "{} was edited",
    "deleted": "{} was deleted",
    "reordered": "{} was at another place",
    "inserted": "{} was inserted",
    "head_edited": "its signed head was edited",
    "head_deleted": "its signed head was deleted",
    "unsealed": "{} was not sealed within ten seconds",
}


async def _events(api: ServiceApi, query: Query, actions: list[str], limit: int) -> JsonObject:
    """Events of several actions merged, newest first, without duplicates: the API filters by one
    action."""
    path = path_to("audit-events")
    if len(actions) <= 1:
        return await listed(api, path, {**query, **({"action": actions[0]} if actions else {})}, limit=limit)
    found: dict[str, tuple[str, JsonValue]] = {}
    more: JsonValue = None
    for action in actions:
        page = await listed(api, path, {**query, "action": action}, limit=limit)
        more = page["next_cursor"] or more
        for event, document in zip(entries_of(AuditEventView, page), _documents(page), strict=True):
            found[event["id"]] = (event["at"], document)
    newest = sorted(found.values(), key=lambda entry: entry[0], reverse=True)
    data: list[JsonValue] = [document for _, document in newest[:limit]]
    return {"data": data, "next_cursor": more if len(newest) <= limit else "more"}


def _documents(page: JsonObject) -> list[JsonValue]:
    data = page["data"]
    return data if isinstance(data, list) else []
