"""A harness in memory whose schedules fire by a clock that tests set."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from application.runs.ports import RunStore
from application.runs.start_run import StartRun
from application.schedules.fire_schedules import FireSchedules
from application.schedules.ports import CronTimes
from application.webhooks.webhook_check import WebhookCheck
from domain.audit.event import AuditEvent
from domain.runs.run import Run
from domain.schedules.schedule import Schedule
from infrastructure.http.egress import EgressPolicy
from infrastructure.runtime.cron import CronsimTimes
from tests.doubles.people import InMemoryUserStore
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.scripted_model import ModelTurn
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.sources import InMemorySourceStore
from tests.schedule_builders import SCHEDULE, a_schedule, made
from tests.unit.application.runs.doubles import AllModels
from tests.unit.application.runs.harness import RunHarness


class ScheduleHarness(RunHarness):
    """A run harness with schedules."""

    def __init__(self, turns: Sequence[ModelTurn] = ()) -> None:
        super().__init__(turns)
        self.schedules = InMemoryScheduleStore(self.state, self.wakeups)
        self.fire = self.firing()

    def firing(self, *, times: CronTimes | None = None, runs: RunStore | None = None) -> FireSchedules:
        """What fires in one more process."""
        start_run = StartRun(
            runs=runs or self.runs,
            agents=self.agents,
            sources=InMemorySourceStore(self.state),
            organizations=self.organizations,
            models=AllModels(),
            prices=self.prices,
            schemas=self.schemas,
            queue=self.queue,
            connections=self.connections,
            trace_ended=self.trace_ended,
            webhooks=WebhookCheck(outbound=EgressPolicy(), secrets=InMemorySecretStore(self.state)),
            clock=self.clock,
            ids=self.ids,
        )
        return FireSchedules(
            due=self.schedules,
            schedules=self.schedules,
            start_run=start_run,
            times=times or CronsimTimes(),
            wakeups=self.wakeups,
            user_access=InMemoryUserStore(self.state),
            clock=self.clock,
        )

    async def add(self, schedule: Schedule | None = None) -> Schedule:
        """A schedule, by default one that is due in a minute and every hour after that."""
        default = a_schedule(cron="1 * * * *", next_fire_at=self.clock.now() + timedelta(minutes=1))
        new = schedule or default
        await self.schedules.add(new, made())
        return new

    async def at(self, moment: datetime) -> float:
        """Set the clock, fire, and say how long to sleep."""
        self.clock.advance((moment - self.clock.now()).total_seconds())
        return await self.fire.execute()

    @property
    def schedule(self) -> Schedule:
        """The one schedule as it stands."""
        return self.state.schedules[SCHEDULE]

    @property
    def begun(self) -> list[Run]:
        """The runs there are, oldest first."""
        return sorted((stored.run for stored in self.state.runs.values()), key=lambda run: (run.created_at, run.id))

    @property
    def entries(self) -> list[AuditEvent]:
        """The audit trail but for how the schedule was made, oldest first."""
        found = (entry for entry in self.state.audit.values() if entry.action.value != "schedule.created")
        return sorted(found, key=lambda entry: entry.at)


def paused(schedule: Schedule) -> Schedule:
    """The next version of it, which does not fire."""
    return replace(schedule, enabled=False, next_fire_at=None, version=schedule.version + 1)
