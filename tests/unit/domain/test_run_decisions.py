"""What is decided about a run that no worker has: what a start does to others, claiming, stopping,
resuming."""

from dataclasses import replace

import pytest

from domain.audit.event import AuditAction
from domain.mcp.elicitation import Elicitation, ElicitationAction
from domain.runs.change import RunFacts
from domain.runs.claiming import ClaimFacts, abandoned_message, decide_claim
from domain.runs.events import RunEventType
from domain.runs.ledger import InputAnswer, ToolCall, ToolCallState
from domain.runs.resuming import Resumption
from domain.runs.run import MAX_LEASE_EXPIRATIONS, MultitaskStrategy, Run, RunStatus
from domain.runs.starting import ThreadFacts, make_room
from domain.runs.stopping import Cancellation
from domain.tools.result import ToolResult
from tests.builders import (
    KEY,
    START,
    a_displayable_call,
    a_run,
    a_run_id,
    a_tool_call,
    a_tool_use,
    after,
)
from tests.refusals import refused

NEW = replace(a_run(a_run_id(9), created_at=after(9)), requested_by=KEY)
QUEUED = a_run()
CLAIMED = QUEUED.claimed(at=START)
DISPLAYED = a_displayable_call()
DONE = ToolResult.succeeded("done")
EXECUTABLE = a_tool_call(1)
UNAPPROVED = replace(a_tool_call(2), state=ToolCallState.AWAITING_APPROVAL)
STOPPING = (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK)


def waiting(*calls: ToolCall, queued_behind: bool = False) -> RunFacts:
    run = CLAIMED.suspended(tuple(a_tool_use(call) for call in calls))
    return RunFacts(run=run, open_calls=calls, queued_behind=queued_behind)


def thread(*unfinished: RunFacts, quarantined: bool = False) -> ThreadFacts:
    return ThreadFacts(quarantined_by=a_run_id(1) if quarantined else None, unfinished=unfinished)


def statuses(strategy: MultitaskStrategy, *unfinished: RunFacts) -> list[RunStatus]:
    """Of the runs that a start with this strategy changes."""
    return [change.changed_run.status for change in make_room(NEW, strategy, thread(*unfinished), may_stop_any=True)]


def claim(run: Run, *calls: ToolCall, is_next: bool = True) -> ClaimFacts:
    return ClaimFacts(run=run, is_next=is_next, agent_version=7, open_calls=calls)


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("strategy", list(MultitaskStrategy))
def test_a_new_message_completes_a_run_that_waits_for_displayed_calls_only(strategy: MultitaskStrategy) -> None:
    assert statuses(strategy, waiting(DISPLAYED)) == [RunStatus.COMPLETED]


@pytest.mark.requirement("D5")
def test_a_queued_message_resumes_a_run_that_has_calls_to_make_before_it_completes() -> None:
    assert statuses(MultitaskStrategy.ENQUEUE, waiting(DISPLAYED, EXECUTABLE)) == [RunStatus.QUEUED]


def test_a_queued_run_changes_nothing_of_the_runs_before_it() -> None:
    before = (waiting(DISPLAYED, UNAPPROVED), RunFacts(run=CLAIMED), RunFacts(run=QUEUED))
    assert statuses(MultitaskStrategy.ENQUEUE, *before) == []


@pytest.mark.parametrize("other", [RunFacts(run=QUEUED), RunFacts(run=CLAIMED), waiting(UNAPPROVED)])
def test_a_start_that_rejects_is_refused_by_any_other_unfinished_run(other: RunFacts) -> None:
    with refused("thread_busy"):
        make_room(NEW, MultitaskStrategy.REJECT, thread(other), may_stop_any=True)


def test_a_start_that_rejects_is_refused_by_the_run_behind_one_that_it_completes() -> None:
    with refused("thread_busy"):
        make_room(NEW, MultitaskStrategy.REJECT, thread(waiting(DISPLAYED), RunFacts(run=QUEUED)), may_stop_any=True)


@pytest.mark.parametrize("strategy", STOPPING)
def test_a_start_that_interrupts_cancels_idle_runs_and_asks_the_others_to_stop(strategy: MultitaskStrategy) -> None:
    changes = make_room(
        NEW, strategy, thread(RunFacts(run=CLAIMED), waiting(UNAPPROVED), RunFacts(run=QUEUED)), may_stop_any=True
    )
    asked, suspended, queued = changes
    assert (asked.step, asked.stop_requested_by) == (None, KEY)
    assert suspended.changed_run.status is queued.changed_run.status is RunStatus.CANCELLED
    assert {change.rolls_back for change in changes} == {strategy is MultitaskStrategy.ROLLBACK}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("strategy", STOPPING)
@pytest.mark.parametrize("other", [RunFacts(run=QUEUED), RunFacts(run=CLAIMED), waiting(UNAPPROVED)])
def test_who_may_not_cancel_the_run_of_another_key_does_not_end_it_by_a_start(
    strategy: MultitaskStrategy, other: RunFacts
) -> None:
    with refused("run_not_yours"):
        make_room(NEW, strategy, thread(other), may_stop_any=False)


@pytest.mark.parametrize("strategy", STOPPING)
def test_own_runs_are_stopped_by_a_start_without_that_right(strategy: MultitaskStrategy) -> None:
    own = RunFacts(run=replace(QUEUED, requested_by=KEY))
    [change] = make_room(NEW, strategy, thread(own), may_stop_any=False)
    assert change.changed_run.status is RunStatus.CANCELLED


def test_a_run_that_waits_for_displayed_calls_only_completes_for_any_requester() -> None:
    [change] = make_room(NEW, MultitaskStrategy.ROLLBACK, thread(waiting(DISPLAYED)), may_stop_any=False)
    assert (change.changed_run.status, change.rolls_back) == (RunStatus.COMPLETED, False)


def test_a_completed_run_is_not_rolled_back() -> None:
    [change] = make_room(NEW, MultitaskStrategy.ROLLBACK, thread(waiting(DISPLAYED)), may_stop_any=True)
    assert not change.rolls_back


@pytest.mark.parametrize("strategy", list(MultitaskStrategy))
def test_a_thread_in_quarantine_takes_no_run(strategy: MultitaskStrategy) -> None:
    with refused("thread_quarantined"):
        make_room(NEW, strategy, thread(quarantined=True), may_stop_any=True)


def test_a_start_sees_all_runs_that_it_may_stop_and_else_the_first_two() -> None:
    assert {strategy: strategy.looks_at for strategy in MultitaskStrategy} == {
        MultitaskStrategy.ENQUEUE: 2,
        MultitaskStrategy.REJECT: 2,
        MultitaskStrategy.INTERRUPT: None,
        MultitaskStrategy.ROLLBACK: None,
    }


def test_an_ended_run_stays_as_it_is_when_it_is_cancelled() -> None:
    ended = QUEUED.ended(RunStatus.CANCELLED, at=START)
    assert Cancellation(actor=KEY, at=after(1)).decide(RunFacts(run=ended)) is None


def test_a_run_in_progress_is_only_asked_to_stop() -> None:
    change = Cancellation(actor=KEY, at=after(1)).decide(RunFacts(run=CLAIMED))
    assert change is not None
    assert (change.step, change.changed_run) == (None, replace(CLAIMED, cancel_requested_by=KEY))


@pytest.mark.parametrize("facts", [RunFacts(run=QUEUED), waiting(DISPLAYED, UNAPPROVED)])
def test_a_run_without_a_worker_is_cancelled_at_once_with_its_calls(facts: RunFacts) -> None:
    change = Cancellation(actor=KEY, at=after(1)).decide(facts)
    assert change is not None
    assert change.step is not None
    assert change.step.run.status is RunStatus.CANCELLED
    assert {call.id for call in change.step.settled} == {call.id for call in facts.open_calls}


def test_a_run_that_is_not_the_next_of_its_thread_is_not_claimed() -> None:
    assert decide_claim(claim(QUEUED, is_next=False), at=START) is None


def test_a_claim_begins_an_epoch_with_the_agents_newest_version() -> None:
    step = decide_claim(claim(QUEUED), at=START)
    assert step is not None
    claimed = step.run
    assert (claimed.status, claimed.epoch, claimed.attempt) == (RunStatus.IN_PROGRESS, 1, 1)
    assert claimed.agent_version == 7


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    ("run", "status"),
    [
        (replace(QUEUED, cancel_requested_by=KEY), RunStatus.CANCELLED),
        (replace(QUEUED, lapses=MAX_LEASE_EXPIRATIONS), RunStatus.FAILED),
    ],
)
def test_a_claim_ends_a_run_that_must_not_be_executed_any_more(run: Run, status: RunStatus) -> None:
    step = decide_claim(claim(run), at=START)
    assert step is not None
    assert step.run.status is status


def test_only_a_message_whose_last_event_is_a_delta_was_abandoned() -> None:
    said = {"message_id": "msg_1"}
    assert abandoned_message(RunEventType.MESSAGE_DELTA, dict(said)) == "msg_1"
    assert abandoned_message(RunEventType.REASONING_DELTA, dict(said)) == "msg_1"
    assert abandoned_message(RunEventType.MESSAGE_COMPLETED, dict(said)) is None


def test_a_run_is_resumed_once_nothing_is_pending_any_more() -> None:
    other = a_displayable_call(1)
    first = Resumption(results={DISPLAYED.id: DONE}, actor=KEY, at=after(1))
    stays = first.decide(waiting(DISPLAYED, other)).changed_run
    assert (stays.status, [use.id for use in stays.pending]) == (RunStatus.REQUIRES_ACTION, [other.id])
    assert first.decide(waiting(DISPLAYED)).changed_run.status is RunStatus.QUEUED


@pytest.mark.requirement("C5", "U6")
@pytest.mark.parametrize(("action", "entries"), [(ElicitationAction.DECLINE, 1), (None, 0)])
def test_who_answers_a_question_is_audited_without_what_they_wrote(
    action: ElicitationAction | None, entries: int
) -> None:
    asked = Elicitation(request_id="1.colour", message="Which?", schema={"type": "object", "properties": {}})
    call = replace(EXECUTABLE, state=ToolCallState.AWAITING_INPUT, elicitation=asked, input=b"sealed")
    run = CLAIMED.suspended((replace(a_tool_use(call), elicitation=asked),))
    answer = InputAnswer(tool_call_id=call.id, request_id="1.colour", input=b"secret", next=None, action=action)
    step = Resumption(answers=(answer,), actor=KEY, at=after(1)).decide(RunFacts(run=run, open_calls=(call,))).step
    assert step is not None
    found = [entry for entry in step.audit if entry.action is AuditAction.RUN_QUESTION_ANSWERED]
    assert len(found) == entries
    for entry in found:
        assert (entry.actor, entry.resource, entry.run_id, entry.tool) == (KEY, call.id, run.id, call.name)
        assert entry.details == {"request_id": "1.colour", "answer": "decline"}


@pytest.mark.requirement("D5")
def test_a_run_is_resumed_for_the_message_behind_it_that_settles_the_rest() -> None:
    first = Resumption(results={DISPLAYED.id: DONE}, actor=KEY, at=after(1))
    changed = first.decide(waiting(DISPLAYED, a_displayable_call(1), queued_behind=True)).changed_run
    assert changed.status is RunStatus.QUEUED


@pytest.mark.parametrize("run", [QUEUED, CLAIMED, QUEUED.ended(RunStatus.CANCELLED, at=START)])
def test_only_a_waiting_run_is_resumed(run: Run) -> None:
    with refused("run_not_waiting"):
        Resumption(actor=KEY, at=after(1)).decide(RunFacts(run=run))


def test_a_result_for_a_call_that_is_not_pending_is_refused() -> None:
    with refused("tool_call_not_pending"):
        Resumption(results={a_displayable_call(5).id: DONE}, actor=KEY, at=after(1)).decide(waiting(DISPLAYED))
