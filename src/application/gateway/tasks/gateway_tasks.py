"""GatewayTasks: agents called as tasks. The run is the task; any process reads its state."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from application.approvals.ports import session_approvals_topic
from application.gateway.calls.answer import GatewayAnswer
from application.gateway.ports import GatewaySessionStore
from application.gateway.tasks.task_ids import TaskIds, task_not_found
from application.gateway.tasks.task_results import TaskResults
from application.gateway.tasks.waiting_tasks import WaitingTasks, waits_for
from application.gateway.tools.agent_caller import agent_caller
from application.runs.agent_reply import reply_of
from application.runs.call_agent import agent_run_id
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunReader, status_topic
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from domain.errors import conflict
from domain.gateway.session import GatewaySession
from domain.gateway.task import GatewayTask, TaskName, TaskStatus, status_of, ttl_ms
from domain.runs.called_by import CalledBy
from domain.runs.run import Run, RunStatus

REREAD_S = 5.0
"""Rereads after this time in case a wake-up was lost."""
STOP_WITHIN_S = 20.0
"""How long a worker may take to release a cancelled run."""


class GatewayTasks:
    """Rules:
    - A task lasts as long as its session.
    - A task whose call waits for an approval calls its agent when it is read after the approval
      (`WaitingTasks`).
    - Results are under the canaries and limits of calls (`TaskResults`).
    - Cancelling a task cancels its run.
    """

    def __init__(
        self,
        *,
        waiting: WaitingTasks,
        results: TaskResults,
        sessions: GatewaySessionStore,
        runs: RunReader,
        cancel_run: CancelRun,
        wakeups: Wakeups,
        task_ids: TaskIds,
        clock: Clock,
    ) -> None:
        self._waiting = waiting
        self._results = results
        self._sessions = sessions
        self._runs = runs
        self._cancel_run = cancel_run
        self._wakeups = wakeups
        self._task_ids = task_ids
        self._clock = clock

    def begun(self, session: GatewaySession, tool: str, answer: GatewayAnswer) -> GatewayTask | None:
        """The task of a call. None for a rejected call: `answer` is complete."""
        now = self._clock.now()
        if answer.begun is not None:
            call_id, run_id = answer.begun
            name = TaskName(session_id=session.id, tool=tool, call_id=call_id, created_at=now, run_id=run_id)
            return self._task(session, self._task_ids.sealed(name), name, TaskStatus.WORKING, "The agent was called.")
        if answer.waiting is not None:
            approval = answer.waiting.approval
            name = TaskName(
                session_id=session.id,
                tool=tool,
                call_id=approval.tool_call_id,
                created_at=now,
                approval_id=approval.id,
            )
            return self._task(session, self._task_ids.sealed(name), name, TaskStatus.WORKING, waits_for(approval))
        return None

    async def get(self, session: GatewaySession, task_id: str) -> GatewayTask:
        """The task's present state. Raises INVALID `task_not_found`, CONFLICT
        `gateway_session_halted`, FORBIDDEN."""
        name = self._task_ids.opened(task_id, session)
        run = await self._run_of(session, name)
        if run is None and name.approval_id is None:
            raise task_not_found()  # retention has deleted the run
        if run is None:
            state = await self._waiting.state(session, name)
            run = await self._run_of(session, name)
            if run is None:
                task = self._task(session, task_id, name, state.status, state.message, at=state.at)
                return replace(task, result=state.result)
        return await self._of_run(session, task_id, name, run)

    async def ended(
        self, session: GatewaySession, task_id: str, on_change: Callable[[GatewayTask], Awaitable[None]]
    ) -> GatewayTask:
        """The task once it has ended. `on_change` receives its state after each change. Raises as
        `get`, also once the session has ended."""
        name, told = self._task_ids.opened(task_id, session), None
        while True:
            topic = await self._topic(session, name)
            async with self._wakeups.subscribe(topic) as woken:
                while topic == await self._topic(session, name):
                    await self._require_open(session)
                    task = await self.get(session, task_id)
                    if task.status.is_terminal:
                        return task
                    if task.message != told:
                        told = task.message
                        await on_change(task)
                    await woken.wait(REREAD_S)

    async def cancel(self, session: GatewaySession, task_id: str) -> GatewayTask:
        """Cancel the task. Raises INVALID `task_not_found`, CONFLICT `task_ended`,
        `task_not_stopped`."""
        name = self._task_ids.opened(task_id, session)
        task = await self.get(session, task_id)
        if task.status.is_terminal:
            raise conflict("task_ended", f"The task has ended: it is {task.status.value}.")
        run = await self._run_of(session, name)
        if run is None:
            if not await self._waiting.cancel(session, name):
                raise conflict("task_not_stopped", "The agent is being called: cancel the task again.")
            return await self.get(session, task_id)
        opener = agent_caller(session, {}, retry_key=None, waits=False).principal
        await self._cancel_run.execute(CancelRunCommand(principal=opener, run_id=run.id))
        await self._stopped(run)
        task = await self.get(session, task_id)
        if task.status is not TaskStatus.CANCELLED:
            raise conflict("task_ended", f"The task was not cancelled: it is {task.status.value}.")
        return task

    async def _require_open(self, session: GatewaySession) -> None:
        stored = await self._sessions.get(session.organization_id, session.id)
        if stored is None or not stored.is_open(self._clock.now()):
            raise task_not_found()

    async def _stopped(self, run: Run) -> None:
        """Wait until a worker has released the run, at most `STOP_WITHIN_S`."""
        until = self._clock.monotonic() + STOP_WITHIN_S
        async with self._wakeups.subscribe(status_topic(run.id)) as woken:
            while (left_s := until - self._clock.monotonic()) > 0:
                stored = await self._runs.get(run.organization_id, run.id)
                if stored is None or stored.status.is_terminal:
                    return
                await woken.wait(min(left_s, REREAD_S))

    async def _topic(self, session: GatewaySession, name: TaskName) -> str:
        """The topic that is signalled when the task may have changed."""
        run = await self._run_of(session, name)
        return session_approvals_topic(session.id) if run is None else status_topic(run.id)

    async def _run_of(self, session: GatewaySession, name: TaskName) -> Run | None:
        run = await self._runs.get(session.organization_id, name.run_id or agent_run_id(session.id, name.call_id))
        called_by = None if run is None else CalledBy.of(run.metadata)
        return run if called_by is not None and called_by.gateway_session_id == session.id else None

    async def _of_run(self, session: GatewaySession, task_id: str, name: TaskName, run: Run) -> GatewayTask:
        status = status_of(run)
        task = self._task(session, task_id, name, status, _message(run), at=run.finished_at or run.started_at)
        if not status.is_terminal:
            return task
        result, run_shape = await self._results.of(session, name, run)
        return replace(task, result=result, run=run_shape)

    def _task(
        self,
        session: GatewaySession,
        task_id: str,
        name: TaskName,
        status: TaskStatus,
        message: str,
        *,
        at: datetime | None = None,
    ) -> GatewayTask:
        return GatewayTask(
            id=task_id,
            status=status,
            message=message,
            created_at=name.created_at,
            updated_at=max(name.created_at, at or name.created_at),
            ttl_ms=ttl_ms(session, name.created_at),
        )


def _message(run: Run) -> str:
    match run.status:
        case RunStatus.QUEUED:
            return f"{run.id} waits for a worker."
        case RunStatus.IN_PROGRESS:
            return f"{run.id} is at turn {run.usage.turns + 1}."
        case RunStatus.REQUIRES_ACTION:
            return reply_of(run).result.text
        case _:
            return f"{run.id} ended: {run.status.value}."
