"""Builders of runs that wait, their approvals, their tools, and the session of a worker that
executes one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from application.runs.execution.interruption import StopSignal
from application.runs.execution.run_session import RunSession
from application.runs.ports import ClaimedRun, RunJournal
from application.system.ports import Clock
from application.tools.toolset import Toolset
from application.tracing.ports import Tracer
from domain.agents.agent import Agent
from domain.approvals.approval import Approval, ApprovalState, PendingApproval, approval_digest
from domain.ids import ApiKeyId, ApprovalId
from domain.mcp.server_pin import ServerPin
from domain.policy.canary import CanaryToken
from domain.policy.layers import PolicyLayers
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.usage import ModelUsage
from domain.threads.message import Message, Role, ToolUse
from domain.tools.tool import Tool
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    SERVER,
    START,
    a_message,
    a_run,
    a_server,
    a_thread,
    a_tool,
    a_tool_call,
    a_tool_use,
    after,
    an_agent,
    an_organization,
    numbered,
)
from tests.doubles.journal import InMemoryRunJournal
from tests.doubles.state import InMemoryState, StoredRun, StoredThread
from tests.doubles.surroundings import FixedClock

CANARY = "canary-of-the-tests"
"""The text of the canary token `vault` of `a_guarded_agent()`."""

ECHO = "mcp__files__echo"
ASKS = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL)}
DENIES = {ECHO: ToolRule(decision=Verdict.DENY)}


def a_guarded_agent(version: int = 1) -> Agent:
    """An agent with the canary token `vault`."""
    return an_agent(version=version, canary_tokens=(CanaryToken(id="vault", secret=CANARY),))


def a_toolset(
    *tools: Tool,
    rules: Mapping[str, ToolRule] | None = None,
    denied: tuple[Tool, ...] = (),
    search_threshold: int | None = None,
) -> Toolset:
    """The tools of a run, `mcp__files__echo` unless others are given, under the rules of its
    agent."""
    return Toolset(
        tools=tools if tools or denied else (a_tool(),),
        denied=denied,
        policies=PolicyLayers(agent=ToolPolicies(rules=tuple((rules or {}).items()))),
        search_threshold=search_threshold,
    )


def a_run_approval(
    call: ToolCall | None = None,
    *,
    state: ApprovalState = ApprovalState.PENDING,
    agent_version: int = 1,
    requested_by: ApiKeyId | None = KEY,
    allow_self_approval: bool = True,
) -> Approval:
    """The approval that a call of `a_run()` needs, for half an hour. Its number is the place of the
    call."""
    call = call or a_tool_call()
    is_pending = state is ApprovalState.PENDING
    return Approval(
        id=ApprovalId(numbered("apr", call.index + 1)),
        organization_id=ORG,
        run_id=call.run_id,
        tool_call_id=call.id,
        tool=call.name,
        arguments=call.params,
        digest=approval_digest(call.name, call.params, agent_version),
        agent_id=AGENT,
        agent_version=agent_version,
        requested_by=requested_by,
        allow_self_approval=allow_self_approval,
        cause="The policy of the agent requires an approval.",
        created_at=START,
        expires_at=after(1800),
        server_id=call.server_id,
        state=state,
        decided_at=None if is_pending else START,
        decided_by=None if is_pending else "system",
    )


def approval_of(call: ToolCall) -> Approval:
    """The stored approval that an `awaiting_approval_call()` waits for."""
    assert call.approval is not None
    return replace(a_run_approval(call), id=call.approval.id)


def a_pinned_approval(approval: Approval) -> Approval:
    """The approval, bound to version 3 of its MCP server."""
    pin = ServerPin.of(a_server(version=3))
    digest = approval_digest(approval.tool, approval.arguments, approval.agent_version, pin)
    return replace(approval, server_id=SERVER, server=pin, digest=digest)


def a_use_awaiting(approval: Approval, *, outcome_unknown: bool = False) -> ToolUse:
    """The pending call of a run that waits for the approval."""
    return ToolUse(
        id=approval.tool_call_id,
        name=approval.tool,
        params=approval.arguments,
        approval=PendingApproval(
            approval_id=approval.id,
            expires_at=approval.expires_at,
            reason=approval.cause,
            outcome_unknown=outcome_unknown,
        ),
    )


def a_waiting_run(*pending: ToolUse) -> Run:
    """A run, made with KEY, that waits for these calls."""
    return a_run(requested_by=KEY).claimed(at=START).suspended(pending)


def a_claimed_run(run: Run | None = None) -> Run:
    """A run under the lease of its first worker."""
    return (run or a_run(requested_by=KEY)).claimed(at=START)


def a_state_with_run(run: Run, *calls: ToolCall, agent: Agent | None = None) -> InMemoryState:
    """In-memory tables that hold the run, its open calls, its thread, its agent and its
    organization. The thread ends with the message of the model that asked for the calls."""
    state = InMemoryState()
    state.organizations[ORG] = an_organization()
    state.agents[run.agent_id] = [agent or an_agent()]
    state.threads[run.thread_id] = StoredThread(thread=a_thread(run.thread_id), messages=list(_said(run, calls)))
    state.runs[run.id] = StoredRun(run=run, calls={call.id: call for call in calls})
    return state


def a_session(
    *calls: ToolCall,
    run: Run | None = None,
    agent: Agent | None = None,
    transcript: Iterable[Message] | None = None,
    journal: RunJournal | None = None,
    state: InMemoryState | None = None,
    tracer: Tracer,
    clock: Clock | None = None,
    stop: StopSignal | None = None,
    lease_holds: bool = True,
) -> RunSession:
    """The session of a worker that has claimed the run. Its steps go to `state` unless a `journal`
    is given."""
    run = run or a_claimed_run()
    journal = journal or InMemoryRunJournal(state or a_state_with_run(run, *calls), InProcessWakeups())
    return RunSession(
        claimed=ClaimedRun(
            lease=Lease(run_id=run.id, organization_id=ORG, thread_id=run.thread_id, epoch=run.epoch),
            run=run,
            agent=agent or an_agent(),
            transcript=tuple(_said(run, calls) if transcript is None else transcript),
            open_calls=calls,
        ),
        journal=journal,
        clock=clock or FixedClock(),
        tracer=tracer,
        stop=stop or StopSignal(),
        lease_holds=lambda: lease_holds,
    )


def an_ended_run(status: RunStatus = RunStatus.COMPLETED) -> Run:
    """A run that ended a second after its start."""
    return a_claimed_run().ended(status, at=after(1), output="Done.")


def _said(run: Run, calls: tuple[ToolCall, ...]) -> tuple[Message, ...]:
    asked = a_message(1, run_id=run.id)
    if not calls:
        return (asked,)
    uses = tuple(a_tool_use(call) for call in calls)
    return asked, a_message(2, run_id=run.id, role=Role.ASSISTANT, content=uses)


def some_usage(input_tokens: int = 100, output_tokens: int = 20, cost_usd: str | None = "0.001") -> ModelUsage:
    return ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=None if cost_usd is None else Decimal(cost_usd),
    )
