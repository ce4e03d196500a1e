"""Observations of runs, model calls and tool calls, independent of a backend's format."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from application.models.ports import ModelReply, ModelRequest
from application.tracing.ports import GenerationRecord, ToolCallRecord
from domain.agents.agent import Agent
from domain.ids import RunId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.usage import ModelUsage
from domain.threads.attachments import without_file_bytes
from domain.threads.message import Content, ImageContent, Role, ToolResultContent
from domain.threads.message_json import content_to_json
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import SEARCH_TOOLS
from infrastructure.tracing import span_ids

RUN_NAME = "execute_run"
WORKFLOW_NAME = "execute_workflow"
GENERATION_NAME = "model_call"


class ObservationKind(StrEnum):
    """Kinds of spans, in Langfuse's terms."""

    AGENT = "agent"
    GENERATION = "generation"
    TOOL = "tool"
    CHAIN = "chain"
    SPAN = "span"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One span in the trace of a run, a gateway session or a workflow run (`run_id`).

    - `error` is set for failures: a stable code, never content.
    - `trace_metadata` describes the run. `parent_id` is None for the root.
    - A model call has its `prompt` instead of an input. The prompt is as long as the thread; sinks
      take a part of it with `newest_first`.
    """

    kind: ObservationKind
    name: str
    run_id: str
    trace_id: int
    span_id: int
    parent_id: int | None
    session_id: str
    started_at: datetime
    finished_at: datetime
    trace_metadata: dict[str, str]
    trace_name: str = RUN_NAME
    input: JsonValue = None
    prompt: ModelRequest | None = None
    output: JsonValue = None
    metadata: JsonObject = field(default_factory=dict)
    model: str | None = None
    usage: ModelUsage | None = None
    error: str | None = None


def traced_as(run: Run) -> RunId | WorkflowRunId:
    """The id that the run's trace derives from: the run, or the workflow run that started it."""
    return _workflow_run_of(run) or run.id


def _workflow_run_of(run: Run) -> WorkflowRunId | None:
    return None if run.wired is None else run.wired.workflow_run_id


def _session_of(run: Run) -> str:
    return _workflow_run_of(run) or run.thread_id


def _trace_name(run: Run) -> str:
    return RUN_NAME if _workflow_run_of(run) is None else WORKFLOW_NAME


def run_observation(run: Run, agent: Agent | None) -> Observation:
    """The observation of a whole run after its end."""
    failed = run.status in (RunStatus.FAILED, RunStatus.HALTED)
    metadata: JsonObject = {
        "status": run.status.value,
        "turns": run.usage.turns,
        "tool_calls": run.usage.tool_calls,
        "attempt": run.attempt,
    }
    if run.incomplete_reason is not None:
        metadata["incomplete_reason"] = run.incomplete_reason.value
    finished_at = run.finished_at or run.started_at or run.created_at
    workflow_run_id = _workflow_run_of(run)
    node_id = str(run.metadata.get("node_id"))
    return Observation(
        kind=ObservationKind.AGENT,
        name=RUN_NAME,
        run_id=run.id,
        trace_id=span_ids.trace_id(traced_as(run)),
        span_id=span_ids.run_span_id(run.id),
        parent_id=None if workflow_run_id is None else span_ids.node_span_id(workflow_run_id, node_id),
        session_id=_session_of(run),
        trace_name=_trace_name(run),
        started_at=run.started_at or run.created_at,
        finished_at=finished_at,
        trace_metadata=_trace_metadata(run, None if agent is None else agent.config.name),
        input=[_content(part) for part in run.input],
        output=run.output,
        metadata=metadata,
        model=run.model,
        usage=ModelUsage(input_tokens=run.usage.input_tokens, output_tokens=run.usage.output_tokens),
        error=(run.error.code if run.error is not None else run.status.value) if failed else None,
    )


def generation_observation(record: GenerationRecord) -> Observation:
    """The observation of a model call, successful or failed."""
    run, request, reply = record.run, record.request, record.reply
    metadata: JsonObject = {
        "turn": record.turn,
        "tools": [tool.name for tool in request.tools],
        "tool_choice": request.tool_choice.value,
    }
    if reply is not None:
        metadata["finish_reason"] = reply.finish_reason.value
    said = record.provider_error
    if said is not None:
        metadata["provider_status"] = said.status
        metadata["provider_code"] = said.code
    return Observation(
        kind=ObservationKind.GENERATION,
        name=GENERATION_NAME,
        run_id=run.id,
        trace_id=span_ids.trace_id(traced_as(run)),
        span_id=span_ids.generation_span_id(run.id, record.turn),
        parent_id=span_ids.run_span_id(run.id),
        session_id=_session_of(run),
        trace_name=_trace_name(run),
        started_at=record.started_at,
        finished_at=record.finished_at,
        trace_metadata=_trace_metadata(run, record.agent.config.name),
        prompt=request,
        output=_reply(reply) if reply is not None else None if said is None else said.message,
        metadata=metadata,
        model=request.model if reply is None else reply.model,
        usage=None if reply is None else reply.usage,
        error=record.error_code,
    )


def tool_call_observation(record: ToolCallRecord) -> Observation:
    """The observation of a tool call, whatever its outcome."""
    run, call = record.run, record.call
    metadata: JsonObject = {
        "tool_name": call.name,
        "tool_type": _tool_type(call),
        "server_id": call.server_id,
        "tool_call_id": call.id,
        "turn": call.turn,
        "is_error": record.result.is_error,
    }
    named = _named_by_server(record)
    if named is not None:
        metadata["server"] = named[0]
    return Observation(
        kind=ObservationKind.TOOL,
        name=_tool_span_name(record),
        run_id=run.id,
        trace_id=span_ids.trace_id(traced_as(run)),
        span_id=span_ids.tool_call_span_id(call.id),
        parent_id=span_ids.run_span_id(run.id),
        session_id=_session_of(run),
        trace_name=_trace_name(run),
        started_at=record.started_at,
        finished_at=record.finished_at,
        trace_metadata=_trace_metadata(run, None),
        input=call.params,
        output=record.result.text,
        metadata=metadata,
        error=_tool_error(record),
    )


def _tool_span_name(record: ToolCallRecord) -> str:
    """`mcp_tool__` and the server's own tool name, or `tool__` and the type."""
    if record.call.type is not ToolType.MCP_TOOL:
        return f"tool__{_tool_type(record.call)}"
    named = _named_by_server(record)
    return f"mcp_tool__{record.call.name if named is None else named[1]}"


def _named_by_server(record: ToolCallRecord) -> tuple[str, str] | None:
    """The server's slug and its own name for the tool. Without the tool they are parsed from the
    model-facing name `mcp__<server>__<tool>`, which may be truncated; a slug has no underscore."""
    if record.tool is not None and record.tool.mcp is not None:
        return record.tool.mcp.server_slug, record.tool.mcp.tool_name
    if record.call.type is not ToolType.MCP_TOOL:
        return None
    parts = record.call.name.split("__", 2)
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == "mcp" else None


def _tool_type(call: ToolCall) -> str:
    """The type of a tool. A search for tools, which the run itself answers, has its own type."""
    if call.type is not None:
        return call.type.value
    return SEARCH_TOOLS if call.name == SEARCH_TOOLS and _succeeded(call) else "unknown"


def _succeeded(call: ToolCall) -> bool:
    return call.result is not None and not call.result.is_error


def _tool_error(record: ToolCallRecord) -> str | None:
    return record.result.error_code


def _trace_metadata(run: Run, agent_name: str | None) -> dict[str, str]:
    metadata = {
        "run_id": run.id,
        "organization_id": run.organization_id,
        "agent_id": run.agent_id,
        "agent_version": str(run.agent_version),
    }
    return metadata if agent_name is None else {**metadata, "agent": agent_name}


def newest_first(request: ModelRequest) -> Iterator[JsonObject]:
    """The messages of a prompt as JSON, newest first."""
    for message in reversed(request.messages):
        yield {"role": message.role.value, "content": [_content(part) for part in message.content]}


def _reply(reply: ModelReply) -> JsonValue:
    calls: list[JsonValue] = [
        {"type": "tool_use", "name": call.name, "params": call.arguments if call.malformed is None else call.malformed}
        for call in reply.calls
    ]
    text: list[JsonValue] = [{"type": "text", "text": reply.text}] if reply.text else []
    return {"role": Role.ASSISTANT.value, "content": [*text, *calls]}


def _content(part: Content) -> JsonObject:
    if isinstance(part, ImageContent):
        return _image(part)
    shown = without_file_bytes(content_to_json(part))
    if isinstance(part, ToolResultContent) and part.images:
        shown["images"] = [_image(image) for image in part.images]
    return shown


def _image(image: ImageContent) -> JsonObject:
    """An image by its type and size; the bytes would fill the trace store."""
    if image.data is None:
        return {"type": "image", "media_type": image.media_type, "url": image.url}
    return {"type": "image", "media_type": image.media_type, "bytes": len(image.data) * 3 // 4}
