"""Observations of gateway sessions."""

from application.tracing.ports import GatewayCallRecord
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from infrastructure.tracing import span_ids
from infrastructure.tracing.observations import Observation, ObservationKind

TRACE_NAME = "gateway_session"


def gateway_call_observation(record: GatewayCallRecord) -> Observation:
    """The observation of a call, whatever its outcome: a separate trace, because a session may last
    for weeks."""
    session, call, result = record.session, record.settlement.call, record.settlement.result
    metadata: JsonObject = {
        "tool_name": call.name,
        "tool_type": call.type.value,
        "server_id": call.server_id,
        "tool_call_id": call.id,
        "is_error": result.is_error,
    }
    mcp = None if record.tool is None else record.tool.mcp
    if mcp is not None:
        metadata["server"] = mcp.server_slug
    trace_metadata = {
        "gateway_session_id": session.id,
        "organization_id": session.organization_id,
        "agent_id": session.agent_id,
        "agent_version": str(record.agent.version),
        "agent": record.agent.config.name,
    }
    if session.run_id is not None:
        trace_metadata["run_id"] = session.run_id
    named = call.name if mcp is None else mcp.tool_name
    return Observation(
        kind=ObservationKind.TOOL,
        name=f"mcp_tool__{named}" if call.type is ToolType.MCP_TOOL else f"tool__{call.type.value}",
        run_id=session.id,
        trace_id=span_ids.trace_id(call.id),
        span_id=span_ids.tool_call_span_id(call.id),
        parent_id=None,
        session_id=session.thread_id,
        started_at=record.started_at,
        finished_at=record.settlement.at,
        trace_metadata=trace_metadata,
        trace_name=TRACE_NAME,
        input=call.params,
        output=result.text,
        metadata=metadata,
        error=(result.error_code or "tool_failed") if result.is_error else None,
    )
