"""Conditions of a `RunFilter` in SQL. What it searches in JSON columns, it compares with their
stored text."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Text, and_, bindparam, exists, func, or_, type_coerce

from application.runs.ports import RunFilter
from domain.ids import OrganizationId
from domain.json_value import JsonValue
from domain.runs.run import RunStatus
from domain.teams import Teams
from infrastructure.persistence.columns.paging import among_newest
from infrastructure.persistence.tables import run, run_request, tool_call
from infrastructure.persistence.threads.queue import is_unfinished
from infrastructure.runtime.json_text import encode

_input = func.replace(type_coerce(run_request.c.input, Text), '{"type":"text","text":"', "")
_metadata = type_coerce(run_request.c.metadata, Text)
_USUAL = (RunStatus.QUEUED, RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION, RunStatus.COMPLETED)
# Literal, in the order of the index's condition: SQLite requires this for a partial index.
_is_not_completed = run.c.status.not_in(
    bindparam("usual", [status.value for status in _USUAL], expanding=True, literal_execute=True)
)
_call = type_coerce(tool_call.c.call, Text)
changed_at = func.coalesce(run.c.finished_at, run.c.started_at, run.c.created_at)


def conditions(
    organization_id: OrganizationId, wanted: RunFilter, *, teams: Teams = None
) -> Iterator[ColumnElement[bool]]:
    """All of them must hold. What is searched are the newest runs that `teams` see."""
    indexed = _indexed(wanted)
    is_open = indexed is is_unfinished
    if indexed is not None:
        yield indexed
    if wanted.history_key is None:  # With `coalesce`, SQLite reads the unfinished runs and not all of the organization.
        yield (func.coalesce(run.c.organization_id, "") if is_open else run.c.organization_id) == organization_id
    else:  # With the organization of `run`, SQLite would walk all its runs by their time to find none.
        yield run_request.c.organization_id == organization_id
        yield run_request.c.history_key == wanted.history_key
    for column, value in (
        (run.c.thread_id, wanted.thread_id),
        (run.c.agent_id, wanted.agent_id),
        (run.c.status, None if wanted.status is None else wanted.status.value),
        (run.c.error_code, wanted.error),
        (_starter(wanted), wanted.started_by),
        (run_request.c.model, wanted.model),
    ):
        if value is not None:
            yield column == value
    if wanted.statuses:
        yield run.c.status.in_([status.value for status in wanted.statuses])
    if wanted.changed_since is not None:
        yield changed_at > wanted.changed_since
    if wanted.since is not None:
        yield run.c.created_at >= wanted.since
    if wanted.until is not None:
        yield run.c.created_at < wanted.until
    if searches := tuple(_searches(wanted)):
        yield among_newest(run, organization_id, until=wanted.until, teams=teams)
        yield from searches


def _indexed(wanted: RunFilter) -> ColumnElement[bool] | None:
    """The condition of the index that has all runs with the statuses, beside those of all runs;
    None where those with the error are fewer."""
    if wanted.are_unfinished:
        return is_unfinished
    statuses = wanted.all_statuses
    return None if not statuses or wanted.error is not None or statuses & set(_USUAL) else _is_not_completed


def _starter(wanted: RunFilter) -> ColumnElement[str]:
    """With `coalesce`, SQLite does not read all runs of a starter where another index has fewer."""
    has_fewer = wanted.thread_id is not None or wanted.error is not None or wanted.are_unfinished
    return func.coalesce(run.c.requested_by, "") if has_fewer else run.c.requested_by


def _searches(wanted: RunFilter) -> Iterator[ColumnElement[bool]]:
    """Conditions without an index."""
    if wanted.text is not None:
        yield or_(_has(_input, encode(wanted.text)[1:-1]), _has(run.c.output, wanted.text))
    if wanted.metadata is not None:
        name, value = wanted.metadata
        yield or_(
            *(
                _metadata.contains(f"{encode(name)}:{each}{end}", autoescape=True)
                for each in _spellings(value)
                for end in ",}"
            )
        )
    if wanted.tool is not None:
        called = _call.startswith(f'{{"name":{encode(wanted.tool)},"params":', autoescape=True)
        yield exists().where(and_(tool_call.c.run_id == run.c.id, called))


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Whether the column contains the text. Upper and lower case of ASCII letters are the same, in
    PostgreSQL of all letters."""
    return type_coerce(column, Text).icontains(text, autoescape=True)


def _spellings(value: str) -> Iterator[JsonValue]:
    """The value as the text that it is, and as the number or truth value that it may be."""
    yield encode(value)
    if value in ("true", "false", "null") or value.lstrip("-").replace(".", "", 1).isdigit():
        yield value
