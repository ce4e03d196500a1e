"""The steps of a run as a worker commits them, and the way to a run in each state."""

from dataclasses import replace
from datetime import datetime

from application.runs.new_run import IdempotencyKey, StartedRun
from application.runs.ports import ClaimedRun
from domain.ids import OrganizationId, RunId, ThreadId, WorkerId, message_id
from domain.runs.audit_trail import run_ended_audit, tool_call_audit
from domain.runs.closing import tool_message
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.provider_error import ProviderError
from domain.runs.run import MultitaskStrategy, Run, RunError, RunStatus
from domain.runs.run_events import message_completed, run_ended, run_requires_action, tool_settled, tool_started
from domain.runs.step import Step
from domain.runs.usage import ModelSpending
from domain.threads.message import Content, Message, Role, TextContent
from tests.builders import ORG, START, THREAD, WORKER, a_displayable_call, a_new_run, a_run, a_run_id, a_tool_use, after
from tests.contract.stores import Stores
from tests.run_builders import some_usage

LEASE_S = 15.0


def run_number(number: int, *, thread_id: ThreadId = THREAD, organization_id: OrganizationId = ORG) -> Run:
    """Run `number`, created at that many seconds."""
    return a_run(a_run_id(number), thread_id=thread_id, organization_id=organization_id, created_at=after(number))


async def start(
    stores: Stores,
    run: Run | None = None,
    *,
    strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
    idempotency: IdempotencyKey | None = None,
) -> StartedRun:
    """Start a run on a thread that exists."""
    return await stores.runs.start(a_new_run(run, strategy=strategy, idempotency=idempotency))


async def claim(stores: Stores, run_id: RunId, *, worker_id: WorkerId = WORKER, at: datetime = START) -> ClaimedRun:
    """Claim a run that is to be had."""
    claimed = await stores.leases.claim(run_id, worker_id, lease_s=LEASE_S, at=at)
    assert isinstance(claimed, ClaimedRun), f"{run_id} cannot be claimed"
    return claimed


async def start_and_claim(stores: Stores, run: Run | None = None) -> ClaimedRun:
    """A run in progress."""
    started = await start(stores, run)
    return await claim(stores, started.run.id, at=started.run.created_at)


async def start_and_suspend(stores: Stores, run: Run | None = None, *, count: int = 1) -> tuple[Run, list[ToolCall]]:
    """A run that waits for the client to settle `count` calls."""
    claimed = await start_and_claim(stores, run)
    calls = [a_displayable_call(index, run_id=claimed.run.id) for index in range(count)]
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, *calls))
    await stores.journal.commit(claimed.lease, suspend_step(claimed.run, *calls))
    return await stored(stores, claimed.run.id), calls


async def stored(stores: Stores, run_id: RunId, organization_id: OrganizationId = ORG) -> Run:
    """The run as it is stored now."""
    run = await stores.runs.get(organization_id, run_id)
    assert run is not None
    return run


def reply_step(run: Run, *calls: ToolCall, text: str = "Let me see.", at: datetime = START) -> Step:
    """The model's reply of the next turn, asking for `calls`."""
    turn = calls[0].turn if calls else run.usage.turns + 1
    content: tuple[Content, ...] = (TextContent(text=text), *(a_tool_use(call) for call in calls))
    message = Message(
        id=message_id(run.id, turn, "assistant"),
        thread_id=run.thread_id,
        run_id=run.id,
        role=Role.ASSISTANT,
        content=content,
        created_at=at,
    )
    return Step(
        run=replace(run, usage=run.usage.after_turn(some_usage())),
        events=(
            message_completed(message, ModelSpending(model=run.model, usage=some_usage(), at=at)),
            *(tool_started(call) for call in calls if call.state is ToolCallState.RECORDED),
        ),
        messages=(message,),
        recorded=calls,
    )


def settle_step(run: Run, call: ToolCall) -> Step:
    """One call is over."""
    return Step(
        run=run,
        events=(tool_settled(call, server=None),),
        settled=(call,),
        audit=(tool_call_audit(run, call),),
    )


def answer_step(run: Run, *calls: ToolCall, at: datetime = START) -> Step:
    """The tool message for calls that carry their results."""
    message = tool_message(run, calls, at=at)
    assert message is not None
    return Step(run=run, events=(message_completed(message),), messages=(message,))


def suspend_step(run: Run, *calls: ToolCall, at: datetime = START) -> Step:
    """The run begins to wait for `calls`."""
    pending = tuple(a_tool_use(call) for call in calls)
    return Step(run=run.suspended(pending, output="Shown."), events=(run_requires_action(pending, at=at),))


def asking_step(run: Run, *calls: ToolCall) -> Step:
    """The run begins to wait: for the calls that ask, and for displayed ones."""
    pending = tuple(replace(a_tool_use(call), elicitation=call.elicitation) for call in calls)
    return Step(
        run=run.suspended(pending),
        events=(run_requires_action(pending, at=START),),
        changed=tuple(call for call in calls if call.state is ToolCallState.AWAITING_INPUT),
    )


def finish_step(
    run: Run, status: RunStatus = RunStatus.COMPLETED, *, at: datetime = START, said: ProviderError | None = None
) -> Step:
    """The run ends (COMPLETED or FAILED), with what the provider said."""
    failed = status is RunStatus.FAILED
    ended = run.ended(
        status,
        at=at,
        output=None if failed else "Done.",
        error=RunError(code="model_unavailable", detail="The model does not answer.", provider_error=said)
        if failed
        else None,
    )
    return Step(run=ended, events=(run_ended(ended, at=at),), audit=(run_ended_audit(ended, at=at),))
