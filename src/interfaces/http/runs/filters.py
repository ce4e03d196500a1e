"""Conditions of lists of runs, as query parameters."""

from datetime import datetime
from typing import Annotated

from litestar.di import Provide
from litestar.params import QueryParameter

from application.runs.ports import RunFilter
from domain.ids import AgentId, ThreadId
from domain.runs.run import RunStatus
from interfaces.http.moments import in_utc


def run_filter(
    *,
    thread_id: Annotated[str | None, QueryParameter(description="Only runs of this thread.")] = None,
    agent_id: Annotated[str | None, QueryParameter(description="Only runs of this agent, by id.")] = None,
    status: Annotated[RunStatus | None, QueryParameter(description="Only runs with this status.")] = None,
    search: Annotated[
        str | None,
        QueryParameter(
            description="Only runs with this text in their input or output; A-Z and a-z are the same. With `search`, "
            "`tool` or `metadata` only the organization's newest 10,000 runs (created before `until`) are read."
        ),
    ] = None,
    model: Annotated[str | None, QueryParameter(description="Only runs of this model, as `PROVIDER:NAME`.")] = None,
    tool: Annotated[str | None, QueryParameter(description="Only runs that called this tool, by its name.")] = None,
    error: Annotated[str | None, QueryParameter(description="Only runs with this error code.")] = None,
    started_by: Annotated[str | None, QueryParameter(description="Only runs with this `started_by`.")] = None,
    metadata: Annotated[
        str | None, QueryParameter(description="Only runs with this entry in their metadata, as `NAME=VALUE`.")
    ] = None,
    since: Annotated[datetime | None, QueryParameter(description="Created then or later; RFC 3339.")] = None,
    until: Annotated[datetime | None, QueryParameter(description="Created before; RFC 3339.")] = None,
) -> RunFilter:
    name, _, value = (metadata or "").partition("=")
    return RunFilter(
        thread_id=None if thread_id is None else ThreadId(thread_id),
        agent_id=None if agent_id is None else AgentId(agent_id),
        status=status,
        text=search or None,
        model=model,
        tool=tool,
        error=error,
        started_by=started_by,
        metadata=(name, value) if name else None,
        since=in_utc(since),
        until=in_utc(until),
    )


FILTERED = {"wanted": Provide(run_filter, sync_to_thread=False)}
