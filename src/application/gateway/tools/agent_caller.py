"""The identity of a gateway session to the agents that it calls."""

from collections.abc import Mapping, Sequence

from application.mcp.ports import McpReply
from application.tools.agent_calls import DEPTH_META, AgentCaller
from domain.gateway.call import GatewayCall
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId, ToolCallId
from domain.tools.capabilities import ToolType


def agent_caller(
    session: GatewaySession, meta: Mapping[str, str], *, retry_key: str | None, waits: bool
) -> AgentCaller:
    """The session's creator, as a runner. `meta` came with the call; for a call from a run it gives
    the depth."""
    told = meta.get(DEPTH_META, "")
    depth = int(told) if told.isascii() and told.isdigit() and len(told) < 3 else 0
    # Which agents it may call is decided by its toolset and, once it calls, by the team of its
    # thread.
    opener = Principal(organization_id=session.organization_id, key_id=session.created_by, role=Role.RUNNER, teams=None)
    return AgentCaller(
        principal=opener,
        gateway_session_id=session.id,
        agent_id=session.agent_id,
        thread_id=session.thread_id,
        depth=depth,
        retry_key=retry_key,
        waits=waits,
    )


def begun_run(call: GatewayCall, replies: Sequence[McpReply]) -> tuple[ToolCallId, RunId] | None:
    """The call of an agent, and the run of its answer. None for other calls."""
    told = replies[-1].structured if replies and call.type is ToolType.AGENT else None
    run_id = told.get("run_id") if isinstance(told, dict) else None
    return (call.id, RunId(run_id)) if isinstance(run_id, str) else None
