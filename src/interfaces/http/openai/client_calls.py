"""Settles calls of the client's functions by the ids that the client was given."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.runs.queries import GetRun, GetRunEvents
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.system.pages import MAX_PAGE_SIZE
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.ids import RunId, ToolCallId
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from interfaces.http.openai.ids import call_id, is_client_call, pending_call, run_of_call


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run whose events after `after_seq` are the answer to a request."""

    run: Run
    after_seq: int


class ClientCalls:
    """Rules:
    - All results are of one run, and all of its pending calls of the client get one.
    - Results that were given before have no effect: the answer after them is the same again, for a client that
      lost its connection.
    """

    def __init__(self, *, get_run: GetRun, get_run_events: GetRunEvents, resume_run: ResumeRun) -> None:
        self._get_run = get_run
        self._get_run_events = get_run_events
        self._resume_run = resume_run

    async def settle(self, principal: Principal, results: Mapping[str, str]) -> Begun:
        """Raises INVALID `tool_call_not_pending`, NOT_FOUND, FORBIDDEN, CONFLICT."""
        run = await self._get_run.execute(principal, _one_run(results))
        uses = {given: pending_call(given, run.pending) for given in results}
        found = {use.id: results[given] for given, use in uses.items() if use is not None and is_client_call(use)}
        if run.status is not RunStatus.REQUIRES_ACTION or not found:
            return Begun(run=run, after_seq=await self._seq_of(principal, run, results))
        missing = [use for use in run.pending if is_client_call(use) and use.id not in found]
        if missing:
            raise _not_pending(f"There is no result for the call {call_id(run.id, missing[0].id)}.")
        given = tuple(ClientToolResult(tool_call_id=ToolCallId(id_), result=text) for id_, text in found.items())
        resumed = await self._resume_run.execute(
            ResumeRunCommand(principal=principal, run_id=run.id, tool_results=given)
        )
        return Begun(run=resumed, after_seq=run.last_seq)

    async def _seq_of(self, principal: Principal, run: Run, results: Mapping[str, str]) -> int:
        """The number of the event by which the run began to wait for these calls."""
        after, found = 0, None
        while True:
            page = await self._get_run_events.execute(principal, run.id, after_seq=after, limit=MAX_PAGE_SIZE)
            for event in page.items:
                if event.type is RunEventType.RUN_REQUIRES_ACTION and _asks_for(run.id, event, results):
                    found = event.seq
            if page.next_cursor is None:
                break
            after = int(page.next_cursor)
        if found is None:
            raise _not_pending(f"The run {run.id} does not wait for these calls.")
        return found


def _asks_for(run_id: RunId, event: RunEvent, results: Mapping[str, str]) -> bool:
    pending = event.data["pending"]
    calls = pending if isinstance(pending, list) else []
    return any(isinstance(call, dict) and call_id(run_id, ToolCallId(str(call["id"]))) in results for call in calls)


def _one_run(results: Mapping[str, str]) -> RunId:
    runs = {run_of_call(given) for given in results}
    first = runs.pop() if len(runs) == 1 else None
    if first is None:
        raise _not_pending("The results must be of calls that one answer of this service had.")
    return first


def _not_pending(detail: str) -> ServiceError:
    return invalid("tool_call_not_pending", detail, Violation(path="tool_call_id", message="is not pending"))
