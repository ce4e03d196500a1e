"""What a model provider said about a failed run, where a protocol has one text for an error:
operators and admins read it after the neutral sentence, others the sentence alone."""

from dataclasses import replace

from application.runs.queries import GetRun
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run


def told_run(principal: Principal, run: Run) -> Run:
    """The run for its reader."""
    error = run.error
    said = None if error is None else error.provider_error
    if error is None or said is None or not said.message or not principal.may(Permission.RUNS_CONTROL):
        return run
    return replace(run, error=replace(error, detail=f"{error.detail} The provider said: {said.message}"))


async def told_event(get_run: GetRun, principal: Principal, event: RunEvent) -> RunEvent:
    """The event for its reader. Stored events have the neutral sentence. Raises NOT_FOUND."""
    if event.type is not RunEventType.RUN_FAILED or not principal.may(Permission.RUNS_CONTROL):
        return event
    error = told_run(principal, await get_run.execute(principal, event.run_id)).error
    if error is None:
        return event
    return replace(event, data={**event.data, "error": {"code": error.code, "detail": error.detail}})
