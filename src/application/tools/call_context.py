"""Context of one tool call, passed unchanged from the run or gateway session to the executor."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from application.mcp.caller_relay import CallerRelay
from application.mcp.log_messages import LogTap
from application.mcp.ports import ConnectionScope, McpReply, ProgressCallback
from application.tools.agent_calls import AgentCaller
from domain.identity.api_key import person_of
from domain.ids import ToolCallId
from domain.mcp.elicitation import Elicitation, InputRound
from domain.runs.run import Run

IDEMPOTENCY_META = "dragoman/idempotency-key"
"""Key of the call id in `_meta`; a server can use it to recognize a repeated call."""
KEEPS_STATE_META = "dragoman/keeps-state"
ASKS_META = "dragoman/asks"
"""Keys in `_meta` for the transport of remote agents: the caller stores where a call continues; it
asks people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallContext:
    """- `scope`: the run or gateway session that makes the call.
    - `timeout_s`: the smallest limit of run, turn and tool. An MCP server's own limit narrows it.
    - `meta`: sent to an MCP server (trace context, idempotency key).
    - `input`: what the server asked before, with the answers.
    - `max_results`, `max_result_bytes`: how much of the result policy allows.
    - `holds_canary`: for native tools, see `NativeToolContext`.
    - `on_reply`: receives the whole reply of an MCP server or an agent, unless policy limits the
      results.
    - `logs`: receives what an MCP server logs during the call.
    - `relay`: answers what an MCP server asks during the call.
    - `caller`: for calls of agents; without it they are refused.
    - `connect`: asks the caller to visit a page where they connect an account, and waits for the
      topic that says so, or until the account can be read. False if the caller cannot be asked, or
      does not.
    - `keeps_state`: the caller stores where the call of a remote agent continues, on an
      `InputAwaited` without a question.
    - `moves`: whether an interrupted call is continued elsewhere.
    """

    tool_call_id: ToolCallId
    scope: ConnectionScope
    timeout_s: float
    meta: dict[str, str] = field(default_factory=dict)
    on_progress: ProgressCallback | None = None
    input: InputRound | None = None
    max_results: int | None = None
    max_result_bytes: int | None = None
    holds_canary: Callable[[str], bool] | None = None
    on_reply: Callable[[McpReply], None] | None = None
    logs: LogTap | None = None
    relay: CallerRelay | None = None
    caller: AgentCaller | None = None
    connect: Callable[[Elicitation, str, Callable[[], Awaitable[bool]]], Awaitable[bool]] | None = None
    keeps_state: bool = False
    moves: Callable[[], bool] | None = None


def scope_of_run(run: Run) -> ConnectionScope:
    """The owner of the connections of the run's calls, which acts as who started it."""
    return ConnectionScope(
        organization_id=run.organization_id,
        thread_id=run.thread_id,
        run_id=run.id,
        person_id=person_of(run.requested_by),
    )
