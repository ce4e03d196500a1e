"""Ends runs that have open calls: every call gets a result, so that the transcript stays
consistent."""

from collections.abc import Iterable
from datetime import datetime

from domain.ids import message_id
from domain.runs.approvals import closed_approvals
from domain.runs.audit_trail import run_ended_audit, tool_call_audit
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.run_events import message_completed, run_ended, tool_settled
from domain.runs.step import Step
from domain.threads.message import Message, Role, ToolResultContent
from domain.tools.result import ToolResult

DISPLAYED = "Tool has been displayed successfully"
CANCELLED = "The run was cancelled before this call was finished."


def displayed_step(run: Run, open_calls: tuple[ToolCall, ...], *, at: datetime) -> Step:
    """Complete a suspended run whose displayed calls are settled by the thread's next user
    message."""
    ended = run.ended(RunStatus.COMPLETED, at=at, output=run.output)
    return closing_step(ended, open_calls, result=ToolResult.succeeded(DISPLAYED), at=at)


def cancelled_step(run: Run, open_calls: tuple[ToolCall, ...], *, at: datetime, actor: str) -> Step:
    """Cancel a run. Its open calls get a failure as result."""
    ended = run.ended(RunStatus.CANCELLED, at=at)
    return closing_step(ended, open_calls, result=ToolResult.failed("run_cancelled", CANCELLED), at=at, actor=actor)


def step_instead_of_waiting(
    run: Run, open_calls: tuple[ToolCall, ...], *, queued_behind: bool, cancel_requested_by: str | None, at: datetime
) -> Step | None:
    """The end of a run that would wait without need, or None if it may wait.

    - Its cancellation was requested.
    - It waits only for displayed calls, and the message that settles them (D5) is `queued_behind`
      it.
    """
    if cancel_requested_by is not None:
        return cancelled_step(run, open_calls, at=at, actor=cancel_requested_by)
    if queued_behind and waits_for_display_only(open_calls):
        return displayed_step(run, open_calls, at=at)
    return None


def waits_for_display_only(open_calls: Iterable[ToolCall]) -> bool:
    """Whether the thread's next user message settles all pending calls (D5)."""
    return all(_awaits_display(call) for call in open_calls if call.state is not ToolCallState.SETTLED)


def lacks_display_only(open_calls: Iterable[ToolCall]) -> bool:
    """Whether only displayed calls and executable calls are unsettled."""
    return all(
        _awaits_display(call) or call.state.is_executable
        for call in open_calls
        if call.state is not ToolCallState.SETTLED
    )


def _awaits_display(call: ToolCall) -> bool:
    return call.is_displayed and call.state is ToolCallState.AWAITING_CLIENT


def closing_step(
    ended: Run,
    open_calls: tuple[ToolCall, ...],
    *,
    result: ToolResult,
    at: datetime,
    actor: str = "system",
    known: tuple[ToolCall, ...] = (),
) -> Step:
    """The last step of `ended`: unsettled calls get `result`, unless they are `known` (settled),
    and one tool message answers all open calls.

    `open_calls` are the calls of the last turn without an answering message, including settled
    ones.
    """
    outcomes = {call.id: call for call in known}
    settled = tuple(
        outcomes.get(call.id) or call.settled(result, at=at)
        for call in open_calls
        if call.state is not ToolCallState.SETTLED
    )
    calls = {**{call.id: call for call in open_calls}, **{call.id: call for call in settled}}
    answer = tool_message(ended, tuple(calls.values()), at=at)
    messages = () if answer is None else (answer,)
    events = [tool_settled(call, server=None) for call in settled]
    return Step(
        run=ended,
        events=(*events, *(message_completed(message) for message in messages), run_ended(ended, at=at)),
        messages=messages,
        settled=settled,
        outcomes=closed_approvals(open_calls, at=at, by=actor),
        audit=(*(tool_call_audit(ended, call) for call in settled), run_ended_audit(ended, at=at, actor=actor)),
    )


def tool_message(run: Run, calls: tuple[ToolCall, ...], *, at: datetime) -> Message | None:
    """One message with the results of a turn's calls, in the model's order; None without calls."""
    if not calls:
        return None
    results: list[ToolResultContent] = []
    for call in sorted(calls, key=lambda entry: entry.index):
        if call.result is None:
            raise ValueError(f"call {call.id} has no result yet")
        results.append(call.result.as_content(call.id, call.called_as or call.name))
    return Message(
        id=message_id(run.id, calls[0].turn, "tools"),
        thread_id=run.thread_id,
        run_id=run.id,
        role=Role.TOOL,
        content=tuple(results),
        created_at=at,
    )
