"""Several processes that fire the schedules of one database, each with connections and a clock of
its own."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from sqlalchemy import select

from application.runs.start_run import StartRun
from application.runs.trace_ended_run import TraceEndedRun
from application.schedules.fire_schedules import FireSchedules
from application.webhooks.webhook_check import WebhookCheck
from domain.audit.event import AuditAction
from infrastructure.http.egress import EgressPolicy
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.tables import audit_event, run, schedule
from infrastructure.runtime.cron import CronsimTimes
from infrastructure.runtime.system import RandomIds
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import START, an_agent, an_audit_event
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases, SqliteFiles
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.surroundings import FixedClock
from tests.integration.persistence.conftest import add_first_organization
from tests.schedule_builders import a_schedule, a_schedule_id, made
from tests.unit.application.runs.doubles import AllModels, FlatPrices, RecordingTracer, SubmittedRuns

SCHEDULES = 12
HOUR = timedelta(hours=1)


class Process:
    """What fires schedules in one process."""

    def __init__(self, stores: Stores) -> None:
        self.clock = FixedClock()
        self.queue = SubmittedRuns()
        connections, models, prices = InMemoryMcpConnections(), AllModels(), FlatPrices()
        start_run = StartRun(
            runs=stores.runs,
            agents=stores.agents,
            sources=stores.sources,
            organizations=stores.organizations,
            models=models,
            prices=prices,
            schemas=JsonSchemaValidator(),
            queue=self.queue,
            connections=connections,
            trace_ended=TraceEndedRun(runs=stores.runs, agents=stores.agents, tracer=RecordingTracer()),
            webhooks=WebhookCheck(outbound=EgressPolicy(), secrets=stores.secrets),
            clock=self.clock,
            ids=RandomIds(),
        )
        self.fire = FireSchedules(
            due=stores.due_schedules,
            schedules=stores.schedules,
            start_run=start_run,
            times=CronsimTimes(),
            wakeups=stores.wakeups,
            user_access=stores.user_access,
            clock=self.clock,
        )


@pytest.fixture(params=["sqlite", "postgres"])
async def databases(request: pytest.FixtureRequest) -> AsyncIterator[list[Database]]:
    """One database as four processes have it open; SQLite's is one process's, whose units still
    come from four sides."""
    async with AsyncExitStack() as stack:
        opened: list[Database]
        if request.param == "sqlite":
            files: SqliteFiles = request.getfixturevalue("sqlite_files")
            opened = [SqliteDatabase(files.fresh())] * 4
        else:
            servers: PostgresDatabases = request.getfixturevalue("postgres_databases")
            url = stack.enter_context(servers.fresh())
            opened = [PostgresDatabase(url, connections=3) for _ in range(4)]
        for database in dict.fromkeys(opened):
            await database.start()
            stack.push_async_callback(database.stop)
        await opened[0].write(add_first_organization, scope=SYSTEM)
        yield opened


@pytest.mark.requirement("E6", "E7")
async def test_every_fire_begins_one_run_however_many_processes_look(databases: list[Database]) -> None:
    processes = [Process(sql_stores(database)) for database in databases]
    stores = sql_stores(databases[0])
    await stores.agents.add(an_agent(), an_audit_event(900, action=AuditAction.AGENT_CREATED))
    for number in range(1, SCHEDULES + 1):
        due = a_schedule(a_schedule_id(number), name=f"s{number}", cron="0 * * * *", next_fire_at=START)
        await stores.schedules.add(due, made(number))

    for hour in range(3):
        for process in processes:
            process.clock.advance((START + hour * HOUR - process.clock.now()).total_seconds())
        await asyncio.gather(*(process.fire.execute() for process in processes))

    runs = await databases[0].read(
        lambda connection: connection.execute(select(run.c.id, run.c.requested_by)).all(), scope=SYSTEM
    )
    assert Counter(row.requested_by for row in runs) == {
        f"schedule:{a_schedule_id(number)}": 3 for number in range(1, SCHEDULES + 1)
    }
    submitted = [run_id for process in processes for run_id in process.queue.run_ids]
    assert sorted(submitted) == sorted(row.id for row in runs)
    actions = await databases[0].read(
        lambda connection: connection.execute(select(audit_event.c.action)).scalars().all(), scope=SYSTEM
    )
    assert actions.count("schedule.fired") == 3 * SCHEDULES
    assert "schedule.not_fired" not in actions
    left = await databases[0].read(
        lambda connection: connection.execute(select(schedule.c.next_fire_at, schedule.c.error_code)).all(),
        scope=SYSTEM,
    )
    assert {tuple(row) for row in left} == {(START + 3 * HOUR, None)}
