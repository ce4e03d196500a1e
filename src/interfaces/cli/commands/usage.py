"""`dragoman usage`: tokens and cost."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated

import typer

from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import AgentOption
from interfaces.cli.failures import BadUsage, wrong_choice
from interfaces.cli.names import names_by_id
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.agents.views import AgentView
from interfaces.http.usage.views import UsageView

_DIMENSIONS = ("day", "agent", "model")
_CHOICES = (*_DIMENSIONS, "person", "tool", "all")


def usage(
    *,
    context: typer.Context,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="First day, UTC, such as 2026-11-01.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Last day, UTC.")] = None,
    agent: AgentOption = None,
    model: Annotated[str | None, typer.Option("--model", metavar="PROVIDER:NAME", help="Only this model.")] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="DIMENSION",
            help="The sums are by day, agent, model, person or tool; or by `all` of the first three.",
        ),
    ] = "day",
    as_json: JsonFlag = False,
) -> None:
    """Show tokens and cost by day, agent, model or person. `--by tool` shows calls."""
    if by not in _CHOICES:
        raise wrong_choice("--by", by, _CHOICES)
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        given = {
            "since": _day("--since", since),
            "until": _day("--until", until),
            "model": model,
            "by": None if by == "all" else by,
        }
        query = {name: value for name, value in given.items() if value is not None}
        if agent is not None:
            query["agent_id"] = read_as(AgentView, await api.get(path_to("agents", agent)))["id"]
        page = await listed(api, path_to("usage"), query)
        if as_json:
            session.terminal.json(page)
            return
        sums = entries_of(UsageView, page)
        if by == "tool":
            session.terminal.table(
                ("tool", "calls", "failed", "blocked", "mean ms"),
                [(entry["tool"] or "", *_calls(entry)) for entry in sorted(sums, key=lambda each: -_count(each))],
                empty="No tool was called in this time.",
            )
            return
        prefixes = {"agent": ["agt"], "all": ["agt"], "person": ["usr", "key", "sch"]}.get(by, []) if sums else []
        names = await names_by_id(api, *prefixes)
        keys = _DIMENSIONS if by == "all" else (by,)
        session.terminal.table(
            (*keys, "cost", "input", "output", "calls", "cached", "unpriced calls"),
            [(*_keys(entry, keys, names), *_amounts(entry)) for entry in sums],
            empty="No model was called in this time.",
        )

    session.perform(show)


def _day(option: str, text: str | None) -> str | None:
    """The day as the API takes it. Raises BadUsage."""
    try:
        return None if text is None else date.fromisoformat(text).isoformat()
    except ValueError as exc:
        raise BadUsage(f"{option} takes a day, such as 2026-11-01, not {text!r}.") from exc


def _keys(entry: UsageView, keys: tuple[str, ...], names: Mapping[str, str]) -> list[str]:
    agent_id = entry["agent_id"] or ""
    starter = (entry["started_by"] or "").removeprefix("schedule:")
    values = {
        "day": entry["day"] or "",
        "agent": names.get(agent_id, agent_id),
        "model": entry["model"] or "",
        "person": names.get(starter, starter),
    }
    return [values[key] for key in keys]


def _amounts(entry: UsageView) -> tuple[str, ...]:
    return (
        f"${entry['cost_usd']:.4f}",
        str(entry["input_tokens"]),
        str(entry["output_tokens"]),
        str(entry["model_calls"]),
        str(entry["cached_tokens"]),
        str(entry["unpriced_calls"] or ""),
    )


def _count(entry: UsageView) -> int:
    return entry["tool_calls"] or 0


def _calls(entry: UsageView) -> tuple[str, ...]:
    blocked = entry["blocked_tool_calls"] or 0
    sent = _count(entry) - blocked
    mean_ms = round((entry["tool_ms"] or 0) / sent) if sent else ""
    return (str(_count(entry)), str(entry["failed_tool_calls"] or ""), str(blocked or ""), str(mean_ms))
