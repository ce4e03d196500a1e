"""`dragoman audit`: who did what."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.api import Query, ServiceApi, listed, path_to
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.shapes import AuditEvent, entries_of
from interfaces.cli.terminal import duration

audit_app = typer.Typer(
    help="Read the audit trail.",
    no_args_is_help=True,
    epilog="Example: dragoman audit list --action 'tool.*' --since 2h",
)

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@audit_app.callback()
def _audit() -> None:
    """Read the audit trail."""


@audit_app.command("list", epilog="Example: dragoman audit list --action 'tool.*' --since 2h")
def list_events(
    context: typer.Context,
    *,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="run.started, or a group: tool.*. Repeatable."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="An RFC 3339 time, or how long ago: 30m, 2h, 7d.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", metavar="ID", help="Only entries of this run.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many entries at most.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """List audit events, newest first."""
    session = session_of(context)
    query: dict[str, str | int] = {}
    if since is not None:
        query["since"] = moment(since, now=datetime.now(UTC))
    if run_id is not None:
        query["run_id"] = run_id

    async def show(api: ServiceApi) -> None:
        page = await _events(api, query, action or [], limit)
        if as_json:
            session.terminal.json(page)
            return
        session.terminal.table(
            ("time", "action", "actor", "resource", "run", "tool", "took"),
            [
                (
                    event.at,
                    event.action,
                    event.actor,
                    event.resource,
                    event.run_id or "",
                    event.tool or "",
                    "" if event.duration_ms is None else duration(event.duration_ms),
                )
                for event in entries_of(AuditEvent, page)
            ],
            empty="There are no such audit events.",
        )
        if page["next_cursor"] is not None:
            session.terminal.note(f"These are the newest {limit}; --limit shows more.")

    session.perform(show)


async def _events(api: ServiceApi, query: Query, actions: list[str], limit: int) -> JsonObject:
    """The service filters by one action at a time; several lists become one, each entry once, newest first."""
    path = path_to("audit-events")
    if len(actions) <= 1:
        return await listed(api, path, {**query, **({"action": actions[0]} if actions else {})}, limit=limit)
    found: dict[str, tuple[str, JsonValue]] = {}
    more: JsonValue = None
    for action in actions:
        page = await listed(api, path, {**query, "action": action}, limit=limit)
        more = page["next_cursor"] or more
        for event, document in zip(entries_of(AuditEvent, page), _documents(page), strict=True):
            found[event.id] = (event.at, document)
    newest = sorted(found.values(), key=lambda entry: entry[0], reverse=True)
    data: list[JsonValue] = [document for _, document in newest[:limit]]
    return {"data": data, "next_cursor": more if len(newest) <= limit else "more"}


def _documents(page: JsonObject) -> list[JsonValue]:
    data = page["data"]
    return data if isinstance(data, list) else []


def moment(text: str, *, now: datetime) -> str:
    """An RFC 3339 time from one, or from `2h`: that long before `now`. Raises BadUsage."""
    ago = _AGO.fullmatch(text)
    try:
        given = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else datetime.fromisoformat(text)
    except (ValueError, OverflowError) as exc:
        raise BadUsage(
            f"--since {text!r} is neither a time such as 2026-01-31T12:00:00Z nor how long ago, such as 2h."
        ) from exc
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).isoformat()
