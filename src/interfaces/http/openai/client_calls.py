"""Settles calls of the client's functions by the ids that the client was given."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from application.runs.queries import GetRun, GetRunEvents
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from interfaces.http.openai.ids import call_id, is_client_call, pending_call, run_of_call
from interfaces.http.runs.answer import Answer
from interfaces.http.runs.stored_events import stored_events

Decided = tuple[bool, str | None]
"""Whether a call is approved, and why not."""
_EXECUTED = (RunEventType.TOOL_STARTED, RunEventType.TOOL_EXECUTED)
_NONE: Mapping[str, Decided] = MappingProxyType({})


class ClientCalls:
    """Rules:
    - All results are of one run, and all of its pending calls of the client get one.
    - Results that were given before have no effect: the answer after them is the same again, for a
      client that lost its connection.
    """

    def __init__(self, *, get_run: GetRun, get_run_events: GetRunEvents, resume_run: ResumeRun) -> None:
        self._get_run = get_run
        self._get_run_events = get_run_events
        self._resume_run = resume_run

    async def settle(
        self,
        principal: Principal,
        results: Mapping[str, str],
        decisions: Mapping[str, Decided] = _NONE,
        *,
        client_request: JsonObject | None = None,
    ) -> Answer:
        """`decisions` are those about approvals, by the ids that the calls would have. With them,
        or without a call of the client, everything that the run waits for must be settled.

        Raises INVALID `tool_call_not_pending`, NOT_FOUND, FORBIDDEN, CONFLICT."""
        named = [*results, *decisions]
        run = await self._get_run.execute(principal, _one_run(named))
        uses = {given: pending_call(given, run.pending) for given in named}
        found = {use.id: given for given, use in uses.items() if use is not None}
        if run.status is not RunStatus.REQUIRES_ACTION or not found:
            await self._refuse_too_late(
                principal, run, [given for given, (approve, _) in decisions.items() if not approve]
            )
            return Answer(run=run, after_seq=await self._seq_of(principal, run, named))
        missing = [use for use in run.pending if use.id not in found and (is_client_call(use) or decisions)]
        if missing:
            raise _not_pending(f"There is no result for the call {call_id(run.id, missing[0].id)}.")
        resumed = await self._resume_run.execute(
            ResumeRunCommand(
                principal=principal,
                run_id=run.id,
                tool_results=tuple(
                    ClientToolResult(tool_call_id=id_, result=results[given])
                    for id_, given in found.items()
                    if given in results
                ),
                approvals=tuple(
                    CallDecision(tool_call_id=id_, approve=decisions[given][0], reason=decisions[given][1])
                    for id_, given in found.items()
                    if given in decisions
                ),
                client_request=client_request,
            )
        )
        return Answer(run=resumed, after_seq=run.last_seq)

    async def waits(self, principal: Principal, run: Run) -> list[RunEvent]:
        """The events by which the run began to wait."""
        return [
            event
            async for events in stored_events(self._get_run_events, principal, run.id)
            for event in events
            if event.type is RunEventType.RUN_REQUIRES_ACTION
        ]

    async def _refuse_too_late(self, principal: Principal, run: Run, denied: Collection[str]) -> None:
        """A denial of a call that was approved and executed is not answered like one that held."""
        async for events in stored_events(self._get_run_events, principal, run.id):
            for event in events:
                if event.type in _EXECUTED:
                    given = call_id(run.id, ToolCallId(str(event.data["tool_call_id"])))
                    if given in denied:
                        raise _not_pending(f"The call {given} was approved and executed.")

    async def _seq_of(self, principal: Principal, run: Run, named: Collection[str]) -> int:
        """The number of the event by which the run began to wait for these calls."""
        found = [event for event in await self.waits(principal, run) if _asks_for(run.id, event, named)]
        if not found:
            raise _not_pending(f"The run {run.id} does not wait for these calls.")
        return found[-1].seq


def _asks_for(run_id: RunId, event: RunEvent, named: Collection[str]) -> bool:
    pending = event.data["pending"]
    calls = pending if isinstance(pending, list) else []
    return any(isinstance(call, dict) and call_id(run_id, ToolCallId(str(call["id"]))) in named for call in calls)


def _one_run(named: Iterable[str]) -> RunId:
    runs = {run_of_call(given) for given in named}
    first = runs.pop() if len(runs) == 1 else None
    if first is None:
        raise _not_pending("The results must be of calls that one answer of this service had.")
    return first


def _not_pending(detail: str) -> ServiceError:
    return invalid("tool_call_not_pending", detail, Violation(path="tool_call_id", message="is not pending"))
