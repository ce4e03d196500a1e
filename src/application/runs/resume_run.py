"""Resumes a suspended run with results of displayed tools, answers to servers' questions, and
decisions about calls."""

from dataclasses import dataclass
from datetime import datetime

from application.agents.ports import AgentStore
from application.approvals.check_decisions import CheckDecisions, CheckedDecisions
from application.approvals.decision_rules import require_decider
from application.mcp.ports import McpServerStore
from application.policy.canary_guard import CanaryGuard
from application.policy.ports import SchemaValidator
from application.runs.elicitation_answers import read_answer
from application.runs.ports import RunQueue, RunReader, RunStore
from application.runs.sealed_input import sealed, unsealed
from application.system.ports import Clock
from application.tools.ports import Box
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut, value_text
from domain.approvals.decision import CallDecision
from domain.approvals.refusals import account_not_yours, approval_stale
from domain.errors import Violation, existing, invalid
from domain.identity.api_key import Principal, person_of
from domain.identity.permission import Permission
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import ElicitationAction
from domain.mcp.server import Credentials
from domain.runs.ledger import InputAnswer, ToolCall, ToolCallState
from domain.runs.resuming import Resumption
from domain.runs.run import Run, RunStatus
from domain.runs.stopping import run_not_yours
from domain.tools.client_tool import require_fitting
from domain.tools.result import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToolResult:
    """The client's result of a displayed tool, or its answer to a server's question
    (`read_answer`)."""

    tool_call_id: ToolCallId
    result: JsonValue
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRunCommand:
    """Results and decisions for some or all pending calls. `client_request` is what the answer in a
    client's protocol repeats from its request."""

    principal: Principal
    run_id: RunId
    tool_results: tuple[ClientToolResult, ...] = ()
    approvals: tuple[CallDecision, ...] = ()
    client_request: JsonObject | None = None


class ResumeRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others, and `operator` to
      approve or deny calls.
    - A result is accepted once, and only for a pending client tool call.
    - A call whose server asks for input takes an answer that fits the question. Where the server is
      used with the account of the person who acts, others only decline; our own question for the
      account takes any answer.
    - `CheckDecisions` has the rules of decisions. A stale approval is rejected, and the run is
      resumed to check its calls again.
    - All of the results, answers and decisions are stored, or none (`Resumption`).
    """

    def __init__(
        self,
        *,
        runs: RunStore,
        reader: RunReader,
        queue: RunQueue,
        decisions: CheckDecisions,
        agents: AgentStore,
        servers: McpServerStore,
        schemas: SchemaValidator,
        box: Box,
        clock: Clock,
    ) -> None:
        self._runs = runs
        self._reader = reader
        self._decisions = decisions
        self._agents = agents
        self._servers = servers
        self._queue = queue
        self._schemas = schemas
        self._box = box
        self._clock = clock

    async def execute(self, command: ResumeRunCommand) -> Run:
        """Raises NOT_FOUND, FORBIDDEN, CONFLICT (`run_not_waiting`, `approval_…`), INVALID."""
        if command.approvals:
            require_decider(command.principal)
        if command.tool_results or not command.approvals:
            command.principal.require(Permission.RUNS_START)
        run = command.principal.found(
            await self._reader.get(command.principal.organization_id, command.run_id), "run", command.run_id
        )
        if command.tool_results:
            require_own_or_operator(command.principal, run)
        named = [given.tool_call_id for given in command.tool_results]
        named += [decision.tool_call_id for decision in command.approvals]
        if not named or len(set(named)) != len(named):
            raise invalid(
                "tool_results_invalid",
                "Resuming needs one result or decision for each of some pending tool calls.",
                Violation(path="tool_results", message="must not be empty or name a call twice"),
            )
        now = self._clock.now()
        checked = await self._checked(command, run, at=now)
        _refuse_strangers(run, command.tool_results)
        asking = await self._asking(run)
        await self._refuse_others_accounts(command, run, asking)
        guard = await self._guard(run)
        require_fitting((), command.client_request)
        request = None if command.client_request is None else guard.without(command.client_request)
        results = {
            given.tool_call_id: guard.result(_result(given))[0]
            for given in command.tool_results
            if given.tool_call_id not in asking
        }
        answers = tuple(
            self._answer(given, asking[given.tool_call_id], index, guard)
            for index, given in enumerate(command.tool_results)
            if given.tool_call_id in asking
        )
        decided = await self._decisions.taken(command.principal, checked, at=now)
        if not results and not answers and not decided:
            return run  # others must approve, too
        return await self._resumed(
            run,
            Resumption(
                results=results,
                answers=answers,
                outcomes=decided,
                actor=command.principal.key_id,
                at=now,
                client_request=request,
            ),
        )

    async def _resumed(self, run: Run, resumption: Resumption) -> Run:
        changed = existing(await self._runs.change(run.organization_id, run.id, resumption.decide), "run", run.id)
        if changed.run.status is RunStatus.QUEUED:
            await self._queue.submit(run.id)
        return changed.run

    async def _checked(self, command: ResumeRunCommand, run: Run, *, at: datetime) -> CheckedDecisions:
        checked = await self._decisions.execute(command.principal, run, command.approvals, at=at)
        if checked.stale is None:
            return checked
        await self._resumed(run, Resumption(outcomes=checked.outcomes, actor="system", at=at))
        raise approval_stale(checked.stale)

    async def _guard(self, run: Run) -> CanaryGuard:
        """A canary token in a result is replaced by its mark, without further effect. An answer
        with a token is rejected, because answers are sent to servers."""
        agent = await self._agents.get(run.organization_id, run.agent_id)
        return CanaryGuard({}) if agent is None else await CanaryGuard.prepared(agent, run.id)

    async def _asking(self, run: Run) -> dict[ToolCallId, ToolCall]:
        """The run's calls whose server waits for an answer."""
        if not any(use.elicitation for use in run.pending):
            return {}
        calls = await self._reader.tool_calls(run.organization_id, run.id)
        return {call.id: call for call in calls if call.state is ToolCallState.AWAITING_INPUT}

    async def _refuse_others_accounts(
        self, command: ResumeRunCommand, run: Run, asking: dict[ToolCallId, ToolCall]
    ) -> None:
        if command.principal.person_id == person_of(run.requested_by):
            return
        for given in command.tool_results:
            call = asking.get(given.tool_call_id)
            if call is None or call.server_id is None or call.elicitation is None or call.elicitation.is_for_account:
                continue
            accepts = isinstance(given.result, dict) and given.result.get("action") == ElicitationAction.ACCEPT
            server = await self._servers.get(run.organization_id, call.server_id) if accepts else None
            if server is not None and server.config.credentials is Credentials.PERSON:
                raise account_not_yours()

    def _answer(self, given: ClientToolResult, call: ToolCall, index: int, guard: CanaryGuard) -> InputAnswer:
        if call.elicitation is None or call.input is None:
            raise ValueError(f"call {call.id} asks for nothing")
        if given.is_error:
            raise invalid(
                "elicitation_answer_invalid",
                "The answer does not fit the question.",
                Violation(path=f"tool_results.{index}.is_error", message="is for results; an answer has an action"),
            )
        path = f"tool_results.{index}.result"
        answer = read_answer(given.result, call.elicitation, path=path, schemas=self._schemas)
        canary_id = None if answer.content is None else guard.arguments(answer.content)
        if canary_id is not None:
            holds = Violation(path=path, message=f"holds the canary token {canary_id}")
            raise invalid("elicitation_answer_invalid", "The answer holds a canary token; it was not sent.", holds)
        answered = unsealed(call.input, self._box).answered(answer)
        return InputAnswer(
            tool_call_id=call.id,
            request_id=call.elicitation.request_id,
            input=sealed(answered, self._box),
            next=answered.current,
            action=answer.action,
        )


def require_own_or_operator(principal: Principal, run: Run) -> None:
    """A runner acts on its own runs, an operator on all. Raises FORBIDDEN."""
    if run.requested_by != principal.key_id and not principal.may(Permission.RUNS_CONTROL):
        raise run_not_yours()


def _refuse_strangers(run: Run, given: tuple[ClientToolResult, ...]) -> None:
    """Reject results for calls that are not pending, with their place in the request. The store
    checks again."""
    pending = {use.id for use in run.pending if use.approval is None}
    wrong = [
        Violation(path=f"tool_results.{index}.tool_call_id", message="is not pending")
        for index, result in enumerate(given)
        if result.tool_call_id not in pending
    ]
    if wrong and run.status is RunStatus.REQUIRES_ACTION:
        raise invalid("tool_call_not_pending", f"Run {run.id} does not wait for all of these calls.", *wrong)


def _result(given: ClientToolResult) -> ToolResult:
    text = cut(cleaned(value_text(given.result)), TEXT_LIMIT_BYTES)
    if given.is_error:
        return ToolResult.failed("client_tool_failed", text or "The client reported a failure.")
    return ToolResult.succeeded(text)
