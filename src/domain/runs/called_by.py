"""The caller of a run's agent, stored in the run's metadata."""

from dataclasses import dataclass

from domain.ids import AgentId, GatewaySessionId, ToolCallId
from domain.json_value import JsonObject

MAX_DEPTH = 3
"""Longest chain of agents that call each other; a longer chain is treated as a cycle."""
_KEY = "called_by"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledBy:
    """A call from a gateway session. `depth` counts the agents in the chain up to this run, starting at 1.
    `agent_id` is the session's agent: the caller. Runs of earlier releases have none."""

    gateway_session_id: GatewaySessionId
    tool_call_id: ToolCallId
    depth: int
    agent_id: AgentId | None = None

    def metadata(self) -> JsonObject:
        called: JsonObject = {
            "gateway_session_id": self.gateway_session_id,
            "tool_call_id": self.tool_call_id,
            "depth": self.depth,
        }
        if self.agent_id is not None:
            called["agent_id"] = self.agent_id
        return {_KEY: called}

    @classmethod
    def of(cls, metadata: JsonObject) -> "CalledBy | None":
        """The inverse of `metadata`. None for other content: users write metadata too, so every field is validated."""
        called = metadata.get(_KEY)
        if not isinstance(called, dict):
            return None
        session, call, depth = (called.get(name) for name in ("gateway_session_id", "tool_call_id", "depth"))
        if not isinstance(session, str) or not isinstance(call, str) or not isinstance(depth, int) or depth < 1:
            return None
        agent = called.get("agent_id")
        return cls(
            gateway_session_id=GatewaySessionId(session),
            tool_call_id=ToolCallId(call),
            depth=depth,
            agent_id=AgentId(agent) if isinstance(agent, str) else None,
        )
