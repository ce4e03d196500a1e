"""The run as a state machine: what may follow what, and what each transition keeps, sets and
clears."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunError, RunStatus
from domain.runs.usage import Usage
from domain.tools.result import ToolResult
from tests.builders import a_displayable_call, a_run, a_tool_use, after

PENDING = (a_tool_use(a_displayable_call(0)), a_tool_use(a_displayable_call(1)))
ERROR = RunError(code="model_unavailable", detail="The model does not answer.")

Transition = Callable[[Run], Run]


def to(status: RunStatus) -> Transition:
    error = ERROR if status is RunStatus.FAILED else None
    reason = IncompleteReason.MAX_TURNS if status is RunStatus.INCOMPLETE else None
    return lambda run: run.ended(status, at=after(9), error=error, incomplete_reason=reason)


TRANSITIONS: dict[str, tuple[Transition, RunStatus]] = {
    "claimed": (lambda run: run.claimed(at=after(5)), RunStatus.IN_PROGRESS),
    "handed_back": (lambda run: run.handed_back(), RunStatus.QUEUED),
    "suspended": (lambda run: run.suspended(PENDING), RunStatus.REQUIRES_ACTION),
    "resumed": (lambda run: run.resumed(), RunStatus.QUEUED),
    "completed": (to(RunStatus.COMPLETED), RunStatus.COMPLETED),
    "incomplete": (to(RunStatus.INCOMPLETE), RunStatus.INCOMPLETE),
    "failed": (to(RunStatus.FAILED), RunStatus.FAILED),
    "cancelled": (to(RunStatus.CANCELLED), RunStatus.CANCELLED),
    "halted": (to(RunStatus.HALTED), RunStatus.HALTED),
}
LEGAL: dict[RunStatus, set[str]] = {
    RunStatus.QUEUED: {"claimed", "cancelled", "failed"},
    RunStatus.IN_PROGRESS: {
        "handed_back",
        "suspended",
        "completed",
        "incomplete",
        "failed",
        "cancelled",
        "halted",
    },
    RunStatus.REQUIRES_ACTION: {"resumed", "cancelled", "failed", "completed"},
    RunStatus.COMPLETED: set(),
    RunStatus.INCOMPLETE: set(),
    RunStatus.FAILED: set(),
    RunStatus.CANCELLED: set(),
    RunStatus.HALTED: set(),
}
CASES = [(status, name, name in LEGAL[status]) for status in RunStatus for name in TRANSITIONS]


@pytest.mark.requirement("A1")
@pytest.mark.parametrize(
    ("status", "transition"), [(status, transition) for status, transition, legal in CASES if legal]
)
def test_a_legal_transition_leads_to_its_status(status: RunStatus, transition: str) -> None:
    apply, expected = TRANSITIONS[transition]
    assert apply(a_run(status=status)).status is expected


@pytest.mark.requirement("A1")
@pytest.mark.parametrize(
    ("status", "transition"), [(status, transition) for status, transition, legal in CASES if not legal]
)
def test_an_illegal_transition_is_a_conflict_naming_the_run(status: RunStatus, transition: str) -> None:
    apply, _ = TRANSITIONS[transition]
    run = a_run(status=status)
    with pytest.raises(ServiceError) as refused:
        apply(run)
    assert refused.value.kind is ErrorKind.CONFLICT
    assert refused.value.code == ("run_not_waiting" if transition == "resumed" else "run_transition_illegal")
    assert refused.value.extra["run_id"] == run.id


@pytest.mark.parametrize("status", list(RunStatus))
def test_every_status_is_queued_active_or_terminal_and_only_one_of_them(status: RunStatus) -> None:
    assert [status is RunStatus.QUEUED, status.is_active, status.is_terminal].count(True) == 1
    assert status.is_terminal is (not LEGAL[status])


@pytest.mark.requirement("E4")
def test_claiming_begins_a_new_epoch_and_attempt_and_keeps_the_first_start() -> None:
    first = a_run().claimed(at=after(5))
    assert (first.epoch, first.attempt, first.started_at) == (1, 1, after(5))
    second = first.handed_back().claimed(at=after(50))
    assert second.epoch > first.epoch
    assert (second.attempt, second.started_at) == (2, after(5))


@pytest.mark.requirement("E4")
def test_handing_back_fences_the_worker_at_once() -> None:
    claimed = a_run().claimed(at=after(5))
    assert claimed.handed_back().epoch > claimed.epoch


@pytest.mark.requirement("D5")
def test_a_run_waits_for_its_pending_calls_and_forgets_them_when_it_goes_on() -> None:
    waiting = a_run(status=RunStatus.IN_PROGRESS).suspended(PENDING, output="Shall I send it?")
    assert (waiting.pending, waiting.output) == (PENDING, "Shall I send it?")
    assert waiting.resumed().pending == ()
    assert waiting.ended(RunStatus.CANCELLED, at=after(9)).pending == ()


def test_an_ended_run_knows_when_and_with_what() -> None:
    run = a_run(status=RunStatus.IN_PROGRESS)
    completed = run.ended(RunStatus.COMPLETED, at=after(9), output="42")
    assert (completed.output, completed.finished_at, completed.error) == ("42", after(9), None)
    failed = run.ended(RunStatus.FAILED, at=after(9), error=ERROR)
    assert failed.error == ERROR
    incomplete = run.ended(RunStatus.INCOMPLETE, at=after(9), incomplete_reason=IncompleteReason.TIMEOUT)
    assert incomplete.incomplete_reason is IncompleteReason.TIMEOUT


@pytest.mark.parametrize("status", [status for status in RunStatus if not status.is_terminal])
def test_a_run_does_not_end_in_a_status_that_is_no_end(status: RunStatus) -> None:
    with pytest.raises(ValueError, match="does not end"):
        a_run(status=RunStatus.IN_PROGRESS).ended(status, at=after(9))


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (RunStatus.FAILED, None, None),
        (RunStatus.COMPLETED, ERROR, None),
        (RunStatus.INCOMPLETE, None, None),
        (RunStatus.COMPLETED, None, IncompleteReason.MAX_COST),
        (RunStatus.FAILED, ERROR, IncompleteReason.MAX_COST),
    ],
)
def test_an_error_belongs_to_a_failure_and_a_reason_to_an_incomplete_run(
    status: RunStatus, error: RunError | None, reason: IncompleteReason | None
) -> None:
    with pytest.raises(ValueError, match="a run has an"):
        a_run(status=RunStatus.IN_PROGRESS).ended(status, at=after(9), error=error, incomplete_reason=reason)


def test_a_transition_changes_nothing_but_what_it_is_about() -> None:
    run = replace(
        a_run(metadata={"a": 1}, tool_allowlist=("x",)),
        cancel_requested_by="key_1",
        active_s=2.5,
        overview="Servers",
        last_seq=7,
    )
    round_trip = run.claimed(at=after(5)).suspended(PENDING).resumed().claimed(at=after(6)).handed_back()
    assert (
        replace(round_trip, epoch=run.epoch, attempt=run.attempt, started_at=run.started_at, output=run.output) == run
    )


def of_all_fields(kind: type) -> dict[str, Any]:
    """A value of its own for each of them, so that none is taken for another's or for its
    default."""
    return {field.name: object() for field in fields(kind)}


def test_a_step_changes_nothing_of_a_run_but_what_it_is_about() -> None:
    run = Run(**of_all_fields(Run))
    used = Usage(turns=3)
    assert run.advanced(usage=used) == replace(run, usage=used, lapses=0)
    stored = run.advanced(usage=used, active_s=2.5, last_seq=7, overview="")
    assert stored == replace(run, usage=used, active_s=2.5, last_seq=7, overview="", lapses=0)


def test_an_outcome_changes_nothing_of_a_call_but_what_it_is_about() -> None:
    call = ToolCall(**of_all_fields(ToolCall))
    done = ToolResult.succeeded("done")
    assert call.settled(done, at=after(1), duration_ms=5) == replace(
        call,
        state=ToolCallState.SETTLED,
        result=done,
        duration_ms=5,
        settled_at=after(1),
        elicitation=None,
        input=None,
    )
