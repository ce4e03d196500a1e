"""The caller of a run's agent, stored in the run's metadata."""

from dataclasses import dataclass

from domain.ids import AgentId, GatewaySessionId, RunId, ToolCallId
from domain.json_value import JsonObject

MAX_DEPTH = 3
"""Longest chain of agents that call each other; a longer chain is treated as a cycle."""
CALLED_BY = "called_by"
"""The field of the metadata. Clients cannot set it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledBy:
    """A call from a run or a gateway session. `depth` counts the agents in the chain up to this
    run, starting at 1. `agent_id` is the agent of the run or session: the caller. Runs of earlier
    releases have none."""

    tool_call_id: ToolCallId
    depth: int
    gateway_session_id: GatewaySessionId | None = None
    run_id: RunId | None = None
    agent_id: AgentId | None = None

    @property
    def caller_id(self) -> str:
        """The run or the session."""
        return self.run_id or self.gateway_session_id or ""

    def metadata(self) -> JsonObject:
        called: JsonObject = {"tool_call_id": self.tool_call_id, "depth": self.depth}
        callers = {"gateway_session_id": self.gateway_session_id, "run_id": self.run_id, "agent_id": self.agent_id}
        return {CALLED_BY: called | {name: value for name, value in callers.items() if value is not None}}

    @classmethod
    def of(cls, metadata: JsonObject) -> "CalledBy | None":
        """The inverse of `metadata`. None for other content: users of earlier releases wrote this
        field too, so all of it is validated."""
        called = metadata.get(CALLED_BY)
        if not isinstance(called, dict):
            return None
        call, depth = called.get("tool_call_id"), called.get("depth")
        session, run, agent = (_text(called, name) for name in ("gateway_session_id", "run_id", "agent_id"))
        if not isinstance(call, str) or not isinstance(depth, int) or depth < 1 or not (session or run):
            return None
        return cls(
            tool_call_id=ToolCallId(call),
            depth=depth,
            gateway_session_id=GatewaySessionId(session) if session else None,
            run_id=RunId(run) if run else None,
            agent_id=AgentId(agent) if agent else None,
        )


def _text(called: JsonObject, name: str) -> str | None:
    value = called.get(name)
    return value if isinstance(value, str) else None
