"""The newest run of a thread or of a client's key: each message of a front end asks for it, by
prepared statements."""

from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, select

from application.runs.ports import RunFilter
from application.system.pages import Page, PageRequest
from domain.ids import OrganizationId
from domain.runs.run import Run, RunStatus
from infrastructure.persistence.columns.column_types import micros
from infrastructure.persistence.columns.paging import encode_cursor, page_of
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.runs.filters import conditions
from infrastructure.persistence.runs.rows import run_of, select_run
from infrastructure.persistence.tables import run

_NEWEST = (run.c.created_at.desc(), run.c.id.desc())


def asks_for_newest(wanted: RunFilter, request: PageRequest) -> bool:
    """Whether a page is one run of a thread, with a status or any, or one of a key."""
    of_thread = RunFilter(thread_id=wanted.thread_id, status=wanted.status)
    of_key = RunFilter(history_key=wanted.history_key)
    return (
        request == PageRequest(limit=1) and wanted in (of_thread, of_key) and wanted != RunFilter(status=wanted.status)
    )


def newest_run(connection: Connection, organization_id: OrganizationId, wanted: RunFilter) -> Page[Run]:
    """The page that `asks_for_newest`."""
    values = {"organization_id": organization_id, "thread_id": wanted.thread_id, "history_key": wanted.history_key}
    statement = _of_key() if wanted.thread_id is None else _of_thread(wanted.status)
    rows = statement.ask(connection, values).typed()
    return page_of(
        rows[:1], run_of, more=len(rows) > 1, cursor=lambda row: encode_cursor(micros(row.created_at), row.id)
    )


@cache
def _of_key() -> Prepared:
    key: Any = bindparam("history_key")
    of_key = conditions(_organization(), RunFilter(history_key=key))
    return Prepared(select_run.where(*of_key).order_by(*_NEWEST).limit(2))


@cache
def _of_thread(status: RunStatus | None) -> Prepared:
    thread: Any = bindparam("thread_id")
    of_thread = tuple(conditions(_organization(), RunFilter(thread_id=thread, status=status)))
    ids = select(run.c.id).where(*of_thread).order_by(*_NEWEST).limit(2)
    return Prepared(select_run.where(run.c.id.in_(ids)).order_by(*_NEWEST))


def _organization() -> Any:
    return bindparam("organization_id")
