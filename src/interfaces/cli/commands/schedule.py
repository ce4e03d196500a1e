"""`dragoman schedule`: runs on a schedule."""

from collections.abc import Mapping
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import LaneOption, OutputSchemaOption, SettingsOption
from interfaces.cli.completion import completed
from interfaces.cli.definition_file import load_object
from interfaces.cli.field_values import field_values, model_settings
from interfaces.cli.session import JsonFlag, Session, session_of
from interfaces.http.schedules.views import ScheduleView

_EXAMPLE = (
    'dragoman schedule add morning --cron "0 7 * * MON-FRI" --timezone Europe/Lisbon --agent guide'
    ' --input "What changed since yesterday?"'
)
_TEXTS = frozenset(
    {"name", "cron", "timezone", "agent", "agent_id", "input", "thread_id", "model", "missed", "multitask_strategy"}
)
"""Fields whose values are always text."""

schedule_app = typer.Typer(
    help="Start runs on a schedule. Schedules trigger while `dragoman serve` or a `dragoman worker` runs.",
    no_args_is_help=True,
    epilog=f"Example: {_EXAMPLE}",
)

Which = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The schedule's name or id.", autocompletion=completed("schedules", "name")),
]


@schedule_app.command("add", epilog=f"Example: {_EXAMPLE}")
def add_schedule(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    cron: Annotated[
        str, typer.Option("--cron", metavar="EXPRESSION", help="Minute, hour, day of month, month, day of week.")
    ],
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="The agent's name or id.")],
    text: Annotated[str, typer.Option("--input", metavar="TEXT", help="The message to the agent.")],
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="The IANA time zone of the expression.")
    ] = "UTC",
    thread_id: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help="Continue this thread instead of a new one each time."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:NAME", help="One of the agent's models.")
    ] = None,
    missed: Annotated[
        str | None,
        typer.Option(
            "--missed", metavar="POLICY", help="For triggers missed while no worker ran: run_once (default) or skip."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", metavar="STRATEGY", help="If the thread is busy: enqueue, reject, interrupt or rollback."
        ),
    ] = None,
    lane: LaneOption = None,
    settings: SettingsOption = None,
    output_schema: OutputSchemaOption = None,
    webhook: Annotated[str | None, typer.Option("--webhook", metavar="URL", help="Webhook URL for its runs.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Add it paused.")] = False,
    own_account: Annotated[
        bool, typer.Option("--own-account", help="Its runs act as you, with your accounts at MCP servers.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a schedule (requires the role admin)."""
    session = session_of(context)
    given: dict[str, JsonValue] = {
        "thread_id": thread_id,
        "model": model,
        "missed": missed,
        "multitask_strategy": strategy,
        "lane": lane,
        "webhook": webhook,
        "own_account": own_account or None,
        "model_settings": model_settings(settings) if settings else None,
        "output_schema": None if output_schema is None else load_object(output_schema),
    }
    body: JsonObject = {
        "name": name,
        "cron": cron,
        "timezone": timezone,
        "agent_id" if agent.startswith("agt_") else "agent": agent,
        "input": text,
        "enabled": not paused,
        **{field: value for field, value in given.items() if value is not None},
    }

    async def add(api: ServiceApi) -> None:
        _say(session, await api.post(path_to("schedules"), body), "Added", as_json=as_json)

    session.perform(add)


@schedule_app.command("list", epilog="Example: dragoman schedule list --json")
def list_schedules(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List schedules, newest first."""
    session_of(context).show_list(
        ScheduleView,
        path_to("schedules"),
        ("name", "next", "cron", "zone", "agent", "error", "last run"),
        lambda schedule, names: (
            schedule["name"],
            _next(schedule),
            schedule["cron"],
            schedule["timezone"],
            names.get(schedule["agent_id"], schedule["agent_id"]),
            "" if schedule["last_error"] is None else schedule["last_error"]["code"],
            schedule["last_run_id"] or "",
        ),
        names=("agt",),
        empty="There are no schedules. Add one with `dragoman schedule add NAME`.",
        as_json=as_json,
    )


@schedule_app.command("show", epilog="Example: dragoman schedule show morning")
def show_schedule(context: typer.Context, schedule: Which, as_json: JsonFlag = False) -> None:
    """Show a schedule: its next run time and the last trigger."""
    session = session_of(context)

    def display(found: ScheduleView, names: Mapping[str, str]) -> None:
        error = found["last_error"]
        session.terminal.fields(
            {
                "id": found["id"],
                "name": found["name"],
                "cron": found["cron"],
                "time zone": found["timezone"],
                "agent": names.get(found["agent_id"], found["agent_id"]),
                "thread": found["thread_id"] or "a new one each time",
                "model": found["model"] or "",
                "output schema": "the agent's" if found["output_schema"] is None else "its own",
                "busy thread": found["multitask_strategy"],
                "missed triggers": found["missed"],
                "acts as": found["person_id"] or "no person",
                "next": _next(found),
                "last triggered": found["last_fired_at"] or "",
                "last run": found["last_run_id"] or "",
                "error": "" if error is None else f"{error['at']} {error['code']}: {error['detail']}",
                "version": str(found["version"]),
                "created": found["created_at"],
            }
        )

    session.show_named(
        ScheduleView,
        lambda api: api.get(path_to("schedules", schedule)),
        display,
        names=("agt",),
        as_json=as_json,
    )


@schedule_app.command(
    "update",
    epilog='Examples: dragoman schedule update morning cron="0 8 * * *" timezone=Asia/Tokyo;'
    " dragoman schedule update morning missed=skip thread_id=null limits='{\"max_turns\": 5}'",
)
def update_schedule(
    context: typer.Context,
    schedule: Which,
    fields: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE...", help="Fields as in the API; a value is JSON, else text.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Change fields of a schedule."""
    _change(
        session_of(context),
        schedule,
        field_values(fields, texts=_TEXTS, may_be_null=("thread_id", "model")),
        "Changed",
        as_json=as_json,
    )


@schedule_app.command("pause", epilog="Example: dragoman schedule pause morning")
def pause_schedule(context: typer.Context, schedule: Which, as_json: JsonFlag = False) -> None:
    """Pause a schedule until it is resumed. Runs in progress continue."""
    _change(session_of(context), schedule, {"enabled": False}, "Paused", as_json=as_json)


@schedule_app.command("resume", epilog="Example: dragoman schedule resume morning")
def resume_schedule(context: typer.Context, schedule: Which, as_json: JsonFlag = False) -> None:
    """Resume a schedule. Triggers missed during the pause are skipped."""
    _change(session_of(context), schedule, {"enabled": True}, "Resumed", as_json=as_json)


@schedule_app.command("delete", epilog="Example: dragoman schedule delete morning")
def delete_schedule(context: typer.Context, schedule: Which) -> None:
    """Delete a schedule. Runs in progress continue."""
    session_of(context).delete(path_to("schedules", schedule), f"Deleted {schedule}.")


def _change(session: Session, schedule: str, changes: JsonObject, done: str, *, as_json: bool) -> None:
    async def change(api: ServiceApi) -> None:
        _say(session, await api.patch(path_to("schedules", schedule), changes), done, as_json=as_json)

    session.perform(change)


def _say(session: Session, document: JsonObject, done: str, *, as_json: bool) -> None:
    if as_json:
        session.terminal.json(document)
        return
    schedule = read_as(ScheduleView, document)
    session.terminal.note(f"{done} {schedule['name']} ({schedule['id']}). Next: {_next(schedule)}.")


def _next(schedule: ScheduleView) -> str:
    return schedule["next_fire_at"] or ("never" if schedule["enabled"] else "paused")
