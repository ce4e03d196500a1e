"""Resumes a waiting run with the client's results for displayed tools."""

from dataclasses import dataclass

from application.runs.ports import RunQueue, RunStore
from application.system.ports import Clock
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut, value_text
from domain.errors import ErrorKind, ServiceError, Violation, invalid, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonValue
from domain.runs.ledger import Settlement
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToolResult:
    """What the client says a displayed tool came to."""

    tool_call_id: ToolCallId
    result: JsonValue
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRunCommand:
    """Results for some or all pending calls; the run goes on once none is pending."""

    principal: Principal
    run_id: RunId
    tool_results: tuple[ClientToolResult, ...]


class ResumeRun:
    """Rules: a runner may resume the runs it made, an operator any; results are accepted for pending displayed calls only,
    once each."""

    def __init__(self, *, runs: RunStore, queue: RunQueue, clock: Clock) -> None:
        self._runs = runs
        self._queue = queue
        self._clock = clock

    async def execute(self, command: ResumeRunCommand) -> Run:
        """The run after it. Raises NOT_FOUND, FORBIDDEN, CONFLICT `run_not_waiting`, INVALID."""
        command.principal.require(Role.RUNNER)
        run = await self._runs.get(command.principal.organization_id, command.run_id)
        if run is None:
            raise not_found("run", command.run_id)
        require_own_or_operator(command.principal, run)
        named = [result.tool_call_id for result in command.tool_results]
        if not named or len(set(named)) != len(named):
            raise invalid(
                "tool_results_invalid",
                "Resuming needs one result for each of some pending tool calls.",
                Violation(path="tool_results", message="must not be empty or name a call twice"),
            )
        now = self._clock.now()
        settlements = tuple(
            Settlement(tool_call_id=given.tool_call_id, result=_result(given), duration_ms=0, at=now)
            for given in command.tool_results
        )
        resumed = await self._runs.resume(command.principal.organization_id, run.id, settlements, at=now)
        if resumed.status is RunStatus.QUEUED:
            await self._queue.submit(resumed.id)
        return resumed


def require_own_or_operator(principal: Principal, run: Run) -> None:
    """A runner acts on the runs it made, an operator on all. Raises FORBIDDEN."""
    if run.requested_by != principal.key_id and not principal.role.includes(Role.OPERATOR):
        raise ServiceError(
            "run_not_yours", ErrorKind.FORBIDDEN, "Another key made this run; acting on it needs the role operator."
        )


def _result(given: ClientToolResult) -> ToolResult:
    text = cut(cleaned(value_text(given.result)), TEXT_LIMIT_BYTES)
    if given.is_error:
        return ToolResult.failed("client_tool_failed", text or "The client reported a failure.")
    return ToolResult.succeeded(text)
