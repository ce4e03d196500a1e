"""Runs to rows and back: `run` has the state, `run_request` the request."""

from typing import Any, cast

from sqlalchemy import Select, select

from domain.ids import AgentId, ApiKeyId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject, JsonValue
from domain.runs.lane import Lane
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.provider_error import ProviderError
from domain.runs.run import Run, RunError, RunStatus
from domain.runs.usage import Usage
from domain.runs.webhook import WebhookNote
from domain.threads.message import ToolUse, UserContent
from domain.threads.message_json import tool_use_to_json
from domain.tools.client_tool import ClientTool
from domain.tools.wired import WiredNodes
from infrastructure.persistence.columns.fields import json_codec
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.tables import run, run_request
from infrastructure.persistence.threads.message_rows import content_json, content_of

select_run: Select[Any] = select(
    run,
    run_request.c.input,
    run_request.c.model,
    run_request.c.limits,
    run_request.c.tool_allowlist,
    run_request.c.model_settings,
    run_request.c.output_schema,
    run_request.c.client_tools,
    run_request.c.instructions,
    run_request.c.history_key,
    run_request.c.client_request,
    run_request.c.metadata,
    run_request.c.overview,
    run_request.c.webhook,
    run_request.c.wired,
    run_request.c.retry_of,
).join_from(run, run_request, run_request.c.run_id == run.c.id)


_write_limits, _read_limits = json_codec(LimitSettings)
_write_settings, _read_settings = json_codec(ModelSettings)
_write_tool, _read_tool = json_codec(ClientTool)

NEW_RUN_COLUMNS = [
    column.name for column in run.columns if column.name not in ("worker_id", "lease_expires_at", "has_push_configs")
]
"""Columns of a run that was never claimed."""


def new_run_row(new: Run, *, last_seq: int) -> dict[str, object]:
    """Columns of `run` for a new run."""
    return {
        "id": new.id,
        "organization_id": new.organization_id,
        "thread_id": new.thread_id,
        "agent_id": new.agent_id,
        "lane": new.lane.value,
        "attempt": new.attempt,
        "lapses": new.lapses,
        "epoch": new.epoch,
        "last_seq": last_seq,
        "cancel_requested_by": new.cancel_requested_by,
        "rolled_back": False,
        "requested_by": new.requested_by,
        "created_at": new.created_at,
        "started_at": new.started_at,
        "team": new.team,
        **state_row(new),
    }


def run_request_row(new: Run, *, webhook_url: bytes | None) -> dict[str, object]:
    """Columns of `run_request`; the URL of the webhook is encrypted."""
    return {
        "run_id": new.id,
        "organization_id": new.organization_id,
        "input": content_json(new.input),
        "model": new.model,
        "limits": _write_limits(new.limits),
        "model_settings": _write_settings(new.model_settings) or None,
        "output_schema": new.output_schema,
        "tool_allowlist": None if new.tool_allowlist is None else list(new.tool_allowlist),
        "metadata": new.metadata,
        "overview": new.overview,
        "webhook": None if new.webhook is None else new.webhook.to_json(),
        "webhook_url": webhook_url,
        "wired": None if new.wired is None else new.wired.to_json(),
        "retry_of": new.retry_of,
        "client_tools": [_write_tool(tool) for tool in new.client_tools] or None,
        "instructions": new.instructions,
        "history_key": new.history_key,
        "client_request": new.client_request,
    }


def state_row(after: Run) -> dict[str, object]:
    """The columns of `run` that a step may change."""
    error = after.error
    return {
        **progress_row(after),
        "status": str(after.status),
        "pending": _pending_json(after.pending),
        "output": after.output,
        "output_json": after.output_json,
        "error_code": None if error is None else error.code,
        "error_detail": None if error is None else error.detail,
        "provider_error": None if error is None or error.provider_error is None else error.provider_error.to_json(),
        "incomplete_reason": None if after.incomplete_reason is None else after.incomplete_reason.value,
        "finished_at": after.finished_at,
    }


def progress_row(after: Run) -> dict[str, object]:
    """The columns of `run` that change during execution. The status is left out: SQLite would
    rewrite the indexes over unfinished runs."""
    usage = after.usage
    return {
        "agent_version": after.agent_version,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "usage_estimated": usage.estimated,
        "cost_nano_usd": usage.cost_usd,
        "turns": usage.turns,
        "tool_calls": usage.tool_calls,
        "active_s": after.active_s,
    }


def run_of(row: AnyRow) -> Run:
    return Run(
        id=RunId(row.id),
        organization_id=OrganizationId(row.organization_id),
        thread_id=ThreadId(row.thread_id),
        agent_id=AgentId(row.agent_id),
        agent_version=row.agent_version,
        status=RunStatus(row.status),
        lane=Lane(row.lane),
        input=cast("tuple[UserContent, ...]", content_of(row.input)),
        model=row.model,
        limits=_read_limits(row.limits),
        tool_allowlist=None if row.tool_allowlist is None else tuple(cast("list[str]", row.tool_allowlist)),
        model_settings=NO_SETTINGS if row.model_settings is None else _read_settings(row.model_settings),
        output_schema=cast("JsonObject | None", row.output_schema),
        metadata=cast(JsonObject, row.metadata),
        requested_by=None if row.requested_by is None else ApiKeyId(row.requested_by),
        created_at=row.created_at,
        webhook=None if row.webhook is None else WebhookNote.from_json(cast(JsonObject, row.webhook)),
        wired=None if row.wired is None else WiredNodes.from_json(cast(JsonObject, row.wired)),
        output=row.output,
        output_json=cast("JsonObject | None", row.output_json),
        error=None if row.error_code is None else _error_of(row),
        incomplete_reason=None if row.incomplete_reason is None else IncompleteReason(row.incomplete_reason),
        pending=cast("tuple[ToolUse, ...]", content_of(row.pending or [])),
        usage=Usage(
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cached_tokens=row.cached_tokens,
            reasoning_tokens=row.reasoning_tokens,
            estimated=row.usage_estimated,
            cost_usd=row.cost_nano_usd,
            turns=row.turns,
            tool_calls=row.tool_calls,
        ),
        attempt=row.attempt,
        lapses=row.lapses,
        epoch=row.epoch,
        last_seq=row.last_seq,
        active_s=row.active_s,
        overview=row.overview,
        cancel_requested_by=row.cancel_requested_by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        retry_of=None if row.retry_of is None else RunId(row.retry_of),
        client_tools=tuple(map(_read_tool, row.client_tools or ())),
        instructions=row.instructions,
        history_key=row.history_key,
        client_request=cast("JsonObject | None", row.client_request),
        team=row.team,
    )


def _error_of(row: AnyRow) -> RunError:
    said = row.provider_error
    return RunError(
        code=row.error_code,
        detail=row.error_detail,
        provider_error=None
        if said is None
        else ProviderError(status=said["status"], code=said["code"], message=said["message"]),
    )


def _pending_json(pending: tuple[ToolUse, ...]) -> JsonValue:
    return [tool_use_to_json(use) for use in pending] or None
