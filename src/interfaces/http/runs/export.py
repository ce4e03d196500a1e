"""Runs as files: lines of JSON, or a table for spreadsheets."""

import csv
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from io import StringIO

from litestar.response import Stream

from application.agents.ports import AgentName
from domain.identity.role import Role
from domain.ids import AgentId
from domain.runs.run import Run
from domain.threads.message import TextContent
from domain.threads.message_json import timestamp
from interfaces.http.runs.views import listed_run_view
from interfaces.spreadsheets import plain

_COLUMNS = (
    "id",
    "created_at",
    "started_at",
    "finished_at",
    "duration_s",
    "status",
    "agent",
    "agent_id",
    "agent_version",
    "model",
    "input",
    "started_by",
    "thread_id",
    "retry_of",
    "turns",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_usd",
    "error",
    "error_detail",
    "incomplete_reason",
    "metadata",
)
_MOST_CHARACTERS = 500
"""Of a text in a table; the JSON has all of it."""

NameAgents = Callable[[Iterable[AgentId]], Awaitable[Mapping[AgentId, AgentName]]]


class ExportFormat(StrEnum):
    NDJSON = "ndjson"
    CSV = "csv"

    @property
    def media_type(self) -> str:
        return "text/csv" if self is ExportFormat.CSV else "application/x-ndjson"


def exported(
    parts: AsyncIterator[tuple[Run, ...]],
    format_: ExportFormat,
    *,
    reads_as: Role,
    names: NameAgents,
    headers: Mapping[str, str] | None = None,
) -> Stream:
    """The runs as a streamed file."""
    content = _table(parts, names) if format_ is ExportFormat.CSV else _lines(parts, reads_as)
    disposition = {"Content-Disposition": f'attachment; filename="runs.{format_.value}"'}
    return Stream(content, media_type=format_.media_type, headers={**(headers or {}), **disposition})


async def _lines(parts: AsyncIterator[tuple[Run, ...]], reads_as: Role) -> AsyncIterator[str]:
    async for runs in parts:
        if runs:
            yield "".join(f"{_json(listed_run_view(run, reads_as))}\n" for run in runs)


async def _table(parts: AsyncIterator[tuple[Run, ...]], names: NameAgents) -> AsyncIterator[str]:
    yield _csv([_COLUMNS])
    async for runs in parts:
        named = await names(run.agent_id for run in runs)
        if runs:
            yield _csv(_row(run, named.get(run.agent_id)) for run in runs)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _row(run: Run, agent: AgentName | None) -> Iterable[object]:
    error, usage = run.error, run.usage
    return (
        run.id,
        timestamp(run.created_at),
        None if run.started_at is None else timestamp(run.started_at),
        None if run.finished_at is None else timestamp(run.finished_at),
        round(run.took_s, 3),
        run.status.value,
        plain("" if agent is None else agent.name),
        run.agent_id,
        run.agent_version,
        plain(run.model),
        _in_a_line(" ".join(part.text for part in run.input if isinstance(part, TextContent))),
        run.requested_by,
        run.thread_id,
        run.retry_of,
        usage.turns,
        usage.tool_calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.cost_usd,
        None if error is None else error.code,
        None if error is None else _in_a_line(error.detail),
        None if run.incomplete_reason is None else run.incomplete_reason.value,
        _json(run.metadata) if run.metadata else None,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _in_a_line(text: str) -> str:
    """The begin of a text, in a cell of one line."""
    return plain(" ".join(text.split())[:_MOST_CHARACTERS])
