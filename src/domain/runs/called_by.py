"""What a run's metadata say of who called its agent as a tool."""

from dataclasses import dataclass

from domain.ids import GatewaySessionId, ToolCallId
from domain.json_value import JsonObject

MAX_DEPTH = 3
"""How many agents may have called each other to get to a run: more is taken for a circle."""
_KEY = "called_by"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledBy:
    """A call of a gateway session; `depth` counts the agents that have called each other up to this run, 1 for the first."""

    gateway_session_id: GatewaySessionId
    tool_call_id: ToolCallId
    depth: int

    def metadata(self) -> JsonObject:
        """For the run."""
        called: JsonObject = {
            "gateway_session_id": self.gateway_session_id,
            "tool_call_id": self.tool_call_id,
            "depth": self.depth,
        }
        return {_KEY: called}

    @classmethod
    def of(cls, metadata: JsonObject) -> "CalledBy | None":
        """The inverse; None for what says nothing of the kind. People write metadata too, so that all of it is looked at: who
        says to be called from less than nothing is taken for a run of their own."""
        called = metadata.get(_KEY)
        if not isinstance(called, dict):
            return None
        session, call, depth = (called.get(name) for name in ("gateway_session_id", "tool_call_id", "depth"))
        if not isinstance(session, str) or not isinstance(call, str) or not isinstance(depth, int) or depth < 1:
            return None
        return cls(gateway_session_id=GatewaySessionId(session), tool_call_id=ToolCallId(call), depth=depth)
