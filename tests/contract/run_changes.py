"""Decisions about stored runs, as the use cases make them through `RunStore.change`."""

from datetime import datetime

from application.runs.ports import ChangedRun, RunReader, RunStore
from domain.approvals.approval import ApprovalOutcome
from domain.errors import not_found
from domain.ids import OrganizationId, RunId
from domain.runs.ledger import InputAnswer, ToolCall
from domain.runs.resuming import Resumption
from domain.runs.run import Run
from domain.runs.stopping import Cancellation
from domain.threads.message import Message


async def cancel(
    runs: RunStore, organization_id: OrganizationId, run_id: RunId, *, actor: str, at: datetime
) -> ChangedRun | None:
    """Stop the run; None if there is no such run."""
    return await runs.change(organization_id, run_id, Cancellation(actor=actor, at=at).decide)


async def resume(
    runs: RunStore,
    organization_id: OrganizationId,
    run_id: RunId,
    settled: tuple[ToolCall, ...],
    *,
    answers: tuple[InputAnswer, ...] = (),
    outcomes: tuple[ApprovalOutcome, ...] = (),
    actor: str,
    at: datetime,
) -> Run:
    """The run after it was given these, with the results of `settled`. Raises what `Resumption`
    raises, and NOT_FOUND."""
    results = {call.id: call.outcome[0] for call in settled}
    given = Resumption(results=results, answers=answers, outcomes=outcomes, actor=actor, at=at)
    changed = await runs.change(organization_id, run_id, given.decide)
    if changed is None:
        raise not_found("run", run_id)
    return changed.run


async def messages_of(runs: RunReader, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
    """The messages that the run wrote; none without the run."""
    outcome = await runs.outcome(organization_id, run_id)
    return () if outcome is None else outcome.messages
