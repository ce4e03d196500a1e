"""An agent as a step: one run on a new thread, started once per node and awaited."""

import asyncio
from datetime import timedelta

from application.runs.ports import RunReader, events_topic, status_topic
from application.runs.start_run import StartRun, StartRunCommand
from application.runs.stop_run import StopRun
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from application.workflows.ports import Expressions
from application.workflows.template_filling import unhurried
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId, RunId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run, RunStatus
from domain.teams import teams_of
from domain.threads.message import TextContent
from domain.threads.message_json import tool_use_to_json
from domain.tools.wired import WiredNodes
from domain.workflows.execution import NodeRun
from domain.workflows.graph import AgentNodeConfig
from domain.workflows.plan import PlannedNode
from domain.workflows.templates import as_text

STORAGE_UNAVAILABLE = "storage_unavailable"
"""Errors that do not concern the agent: the worker waits, or leaves the run to another worker."""
REREAD_S = 5.0
"""Interval of checks on the agent's run without a signal."""
_TRY_AGAIN = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.LIMIT})


class AgentStep:
    """Rules:
    - The run sees exactly the tools wired to the node. Its agent's policies and limits apply.
    - The run belongs to the team of the workflow run; its agent, to this team or to the
      organization.
    - Only a completed run is a success.
    - A suspended run suspends its node, again for the node's full timeout.
    - Abandoning the node cancels the run.
    """

    def __init__(
        self,
        *,
        start_run: StartRun,
        runs: RunReader,
        stop_run: StopRun,
        wakeups: Wakeups,
        expressions: Expressions,
        clock: Clock,
    ) -> None:
        self._start_run = start_run
        self._runs = runs
        self._stop_run = stop_run
        self._wakeups = wakeups
        self._expressions = expressions
        self._clock = clock

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded | AwaitsAnswer:
        if not isinstance(node.config, AgentNodeConfig):
            raise ValueError(f"{node.kind} is no agent")
        run_id = run.run_id or await self._begun(node, node.config, run, context)
        ended = await self._awaited(context.organization_id, run_id)
        if ended.status is RunStatus.REQUIRES_ACTION:
            timeout_s = node.settings.timeout_s
            due_at = None if timeout_s is None else self._clock.now() + timedelta(seconds=timeout_s)
            calls: list[JsonValue] = [tool_use_to_json(use) for use in ended.pending]
            return AwaitsAnswer(asked={"calls": calls}, due_at=due_at, run_seq=ended.last_seq)
        if ended.status is not RunStatus.COMPLETED:
            raise _failure(ended)
        output: JsonObject = {"text": ended.output, "run_id": ended.id, "thread_id": ended.thread_id}
        if ended.output_json is not None:
            output["output_json"] = ended.output_json
        return Succeeded(output=output)

    async def cancel(self, organization_id: OrganizationId, run_id: RunId, *, actor: str) -> None:
        run = await self._runs.get(organization_id, run_id)
        if run is not None and not run.status.is_terminal:
            await self._stop_run.execute(run, actor=actor)

    async def has_moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> bool:
        """Whether the run is no longer suspended at event `since_seq`."""
        run = await self._runs.get(organization_id, run_id)
        return run is None or run.status is not RunStatus.REQUIRES_ACTION or run.last_seq != since_seq

    async def moved_on(self, organization_id: OrganizationId, run_id: RunId, *, since_seq: int) -> None:
        """Wait until `has_moved_on`."""
        async with self._wakeups.subscribe(events_topic(run_id)) as signal:
            while not await self.has_moved_on(organization_id, run_id, since_seq=since_seq):
                await signal.wait(REREAD_S)

    async def _begun(self, node: PlannedNode, config: AgentNodeConfig, run: NodeRun, context: NodeContext) -> RunId:
        """Start the run and record it, both or neither, so that abandoning the node can cancel
        it."""

        async def begin() -> RunId:
            run_id = await self._started(node, config, run, context)
            await context.note_run(node.id, run_id)
            return run_id

        beginning = asyncio.ensure_future(begin())
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            await asyncio.wait((beginning,))
            if not beginning.cancelled():
                beginning.exception()  # the node is abandoned: its outcome is not needed
            raise

    async def _started(self, node: PlannedNode, config: AgentNodeConfig, run: NodeRun, context: NodeContext) -> RunId:
        given = await context.given(node, config.input, self._expressions)
        text = await unhurried(lambda: as_text(given), (given,))
        command = StartRunCommand(
            # Model settings of a node were saved by an admin.
            principal=Principal(
                key_id=context.requested_by,
                organization_id=context.organization_id,
                role=Role.OPERATOR,
                teams=teams_of(context.team),
            ),
            agent=config.agent,
            team=context.team,
            input=(TextContent(text=text),),
            model_settings=config.model_settings,
            output_schema=config.output_schema,
            wired=WiredNodes(workflow_run_id=context.workflow_run_id, node_ids=node.connected_tool_node_ids),
            metadata={"workflow_run_id": context.workflow_run_id, "node_id": node.id},
            # A continued node finds the run that it started.
            idempotency_key=derived_id("wfn", context.workflow_run_id, node.id, run.attempt),
        )
        try:
            return (await self._start_run.execute(command)).run.id
        except ServiceError as error:
            if error.code == STORAGE_UNAVAILABLE:
                raise
            faults = "".join(f" {violation.path} {violation.message}." for violation in error.violations)
            raise NodeFailed(error.code, f"{error.detail}{faults}", retryable=error.kind in _TRY_AGAIN) from error

    async def _awaited(self, organization_id: OrganizationId, run_id: RunId) -> Run:
        async with self._wakeups.subscribe(status_topic(run_id)) as signal:
            while True:
                run = await self._runs.get(organization_id, run_id)
                if run is None:
                    raise NodeFailed("run_not_found", f"The run {run_id} of the agent is gone.")
                if run.status.is_terminal or run.status is RunStatus.REQUIRES_ACTION:
                    return run
                await signal.wait(REREAD_S)


def _failure(run: Run) -> NodeFailed:
    if run.error is not None:
        return NodeFailed(run.error.code, run.error.detail, retryable=True)
    reason = f": {run.incomplete_reason.explanation}" if run.incomplete_reason is not None else ""
    return NodeFailed(
        f"agent_run_{run.status.value}",
        f"The agent's run {run.id} ended {run.status.value}{reason}.",
        retryable=run.status is RunStatus.INCOMPLETE,
    )
