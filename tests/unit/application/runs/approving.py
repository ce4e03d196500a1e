"""A harness whose agent needs a person's word for some tools."""

from application.approvals.fire_timers import FireTimers
from application.approvals.ports import TimerStore
from application.mcp.ports import McpReply
from application.runs.decide_run_approval import DecideRunApproval
from application.runs.resume_run import ClientToolResult, ResumeRunCommand
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.policy.rules import OnBlock, ToolPolicies, ToolRule, Verdict
from domain.runs.run import Run
from tests.approval_builders import no_gateway_approvals
from tests.builders import ECHO_SCHEMA
from tests.doubles.approvals import InMemoryTimerStore
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import call, says
from tests.unit.application.runs.harness import ADMIN, EMAIL, RunHarness

SEND = "mcp__s__send"
READ = "mcp__s__read"


def asks_first(
    *, ttl_s: float | None = None, allow_self: bool | None = None, on_block: OnBlock | None = None, pattern: str = SEND
) -> ToolPolicies:
    """Calls need an approval."""
    rule = ToolRule(
        decision=Verdict.REQUIRE_APPROVAL, approval_ttl_s=ttl_s, allow_self_approval=allow_self, on_block=on_block
    )
    return ToolPolicies(rules=((pattern, rule),))


def denies(pattern: str = SEND, on_block: OnBlock | None = None) -> ToolPolicies:
    return ToolPolicies(rules=((pattern, ToolRule(decision=Verdict.DENY, on_block=on_block)),))


async def _send(invocation: Invocation) -> McpReply:
    return text_reply(f"sent {invocation.arguments['text']}")


def a_harness(*turns: ModelTurn, policies: ToolPolicies | None = None) -> RunHarness:
    """A server with `send`, which needs an approval unless said otherwise, and `read`. The model
    sends one text, then answers."""
    tools = {
        "send": InMemoryTool(answer=_send, input_schema=ECHO_SCHEMA),
        "read": InMemoryTool(answer=text_reply("text")),
    }
    harness = RunHarness(
        turns or (sends("hello"), says("Sent.")),
        servers={"s": InMemoryMcpServer(tools=tools)},
    )
    harness.change_agent(tool_policies=asks_first() if policies is None else policies)
    return harness


def sends(*texts: str, beside: tuple[str, ...] = ()) -> ModelTurn:
    """A turn that sends texts, and calls other tools without arguments (an e-mail is displayed)."""
    others = tuple(call(name, EMAIL if name == "send_email" else {}) for name in beside)
    return ModelTurn(calls=(*(call(SEND, {"text": text}) for text in texts), *others))


def approvals(harness: RunHarness, run_id: RunId) -> list[Approval]:
    """All of the run's, in the order of their calls, older ones first."""
    places = {entry.id: entry.index for entry in harness.ledger(run_id)}
    found = [approval for approval in harness.state.approvals.values() if approval.run_id == run_id]
    return sorted(found, key=lambda approval: (places[approval.tool_call_id], approval.agent_version))


def states(harness: RunHarness, run_id: RunId) -> list[ApprovalState]:
    return [approval.state for approval in approvals(harness, run_id)]


async def decide(
    harness: RunHarness,
    run_id: RunId,
    *decisions: CallDecision,
    principal: Principal = ADMIN,
    results: tuple[ClientToolResult, ...] = (),
) -> Run:
    """Resume the run with these."""
    command = ResumeRunCommand(principal=principal, run_id=run_id, approvals=decisions, tool_results=results)
    return await harness.resume_run.execute(command)


def fire_timers(harness: RunHarness, timers: TimerStore | None = None) -> FireTimers:
    """What sees to the harness's timers."""
    return FireTimers(
        timers=timers or InMemoryTimerStore(harness.state),
        approvals=harness.approvals,
        of_run=DecideRunApproval(
            resume_run=harness.resume_run, runs=harness.runs, queue=harness.queue, clock=harness.clock
        ),
        of_session=no_gateway_approvals(),
        wakeups=harness.wakeups,
        clock=harness.clock,
    )
