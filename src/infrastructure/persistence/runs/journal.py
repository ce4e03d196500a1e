"""The journal of a claimed run, in SQL."""

from sqlalchemy import Connection, bindparam, select

from application.approvals.ports import TIMERS_TOPIC
from application.runs.ports import StepOutcome
from application.system.wakeups import Wakeups
from domain.runs.events import NewEvent
from domain.runs.lease import Lease
from domain.runs.run import Run, RunStatus
from domain.runs.step import Step
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.retry_deadline import STEP_RETRY_S, retrying_for
from infrastructure.persistence.engine.staged import Staged, Stages, completed
from infrastructure.persistence.runs.steps import append_events, commit_step, follow_up, is_plain, waker
from infrastructure.persistence.secrets.box import KeyedBox
from infrastructure.persistence.tables import run
from infrastructure.persistence.threads.item_columns import sealed_items
from infrastructure.persistence.threads.queue import lock_thread_of

_cancel_requested_by = select(run.c.cancel_requested_by).where(
    run.c.id == bindparam("run_id"),
    run.c.epoch == bindparam("lease_epoch"),
    run.c.status == RunStatus.IN_PROGRESS.value,
)


class SqlRunJournal:
    """The `RunJournal` port. It waits long for an unavailable database, and looks up commits with
    an unknown result."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: KeyedBox) -> None:
        self._database = database
        self._wakeups = wakeups
        self._box = box

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        leaves = step.run.status is not RunStatus.IN_PROGRESS
        items = await sealed_items(lease.organization_id, step.messages, self._box)

        # Quoted: annotations of a nested function are evaluated at each call.
        def begin(connection: Connection) -> "Stages[tuple[StepOutcome, Run]]":
            if leaves:
                # A concurrent start or claim on the thread either sees this step or is seen by it.
                lock_thread_of(connection, lease.run_id)
            return commit_step(connection, lease, step, items)

        def unit(connection: Connection) -> "tuple[StepOutcome, Run]":
            return completed(begin(connection))

        def wake(stored: "tuple[StepOutcome, Run]") -> None:
            follow_up(self._wakeups, stored[1], has_announced=stored[0].has_announced)
            if step.approvals:
                self._wakeups.wake(TIMERS_TOPIC)

        with retrying_for(STEP_RETRY_S):
            outcome, _ = await self._database.write(
                Staged(begin) if is_plain(step) else unit,
                scope=lease.organization_id,
                after_commit=wake,
            )
        return outcome

    async def append(self, lease: Lease, events: tuple[NewEvent, ...]) -> None:
        with retrying_for(STEP_RETRY_S):
            await self._database.write(
                Staged(lambda connection: append_events(connection, lease, events)),
                scope=lease.organization_id,
                after_commit=waker(self._wakeups, lease.run_id),
            )

    async def cancel_requested_by(self, lease: Lease) -> str | None:
        wanted = {"run_id": lease.run_id, "lease_epoch": lease.epoch}
        row = await self._database.read(
            lambda connection: connection.execute(_cancel_requested_by, wanted).first(), scope=lease.organization_id
        )
        return "system" if row is None else row.cancel_requested_by
