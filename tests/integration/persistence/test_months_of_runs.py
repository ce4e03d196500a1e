"""Events and tool calls of runs on PostgreSQL lie in monthly partitions by the ids of their runs,
and a month goes with its partitions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from domain.ids import AgentId, OrganizationId, RunId, ThreadId, derived_id
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.months import remove_month
from infrastructure.persistence.engine.postgres.plans import PLANS_BY_KEYS
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.engine.staged import ByKeys
from infrastructure.persistence.retention import run_months
from infrastructure.persistence.retention.months import SqlMonthlyTables
from infrastructure.persistence.retention.run_months import FEW, SqlRunMonths
from tests.builders import (
    AGENT,
    ORG,
    OTHER_ORG,
    a_run,
    a_settled_call,
    a_thread,
    a_tool_call,
    an_agent,
    an_audit_event,
    an_organization,
    numbered,
)
from tests.contract.run_steps import (
    answer_step,
    finish_step,
    reply_step,
    settle_step,
    start_and_claim,
    start_and_suspend,
    stored,
)
from tests.contract.sql_legs import opened
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.integration.persistence.monthly import (
    an_id,
    moment_in,
    months_before,
    months_of,
    name_of,
    partition_of,
    with_ended_months,
)
from tests.refusals import refused

pytestmark = pytest.mark.requirement("K5", "E7")

OLDEST, NEXT, LAST = months_before(3)
NOW = datetime.now(UTC)
AGENTS = {ORG: AGENT, OTHER_ORG: AgentId(numbered("agt", 2))}
DAY = timedelta(days=1)
EVERYTHING_GOES = {ORG: NOW + DAY, OTHER_ORG: NOW + DAY}


@dataclass(slots=True)
class Runs:
    """Two organizations on a database with three ended months."""

    url: str
    database: Database
    stores: Stores

    async def thread(self, at: datetime, organization_id: OrganizationId = ORG) -> ThreadId:
        thread_id = ThreadId(an_id("thr", at))
        await self.stores.threads.add(a_thread(thread_id, organization_id=organization_id, created_at=at))
        return thread_id

    async def run(
        self, at: datetime, thread_id: ThreadId | None = None, of: OrganizationId = ORG, run_id: RunId | None = None
    ) -> Run:
        """A run with a tool call, which ended at once."""
        thread_id = thread_id or await self.thread(at, of)
        run = a_run(
            run_id or RunId(an_id("run", at)),
            thread_id=thread_id,
            organization_id=of,
            agent_id=AGENTS[of],
            created_at=at,
        )
        claimed = await start_and_claim(self.stores, run)
        call = a_tool_call(run_id=run.id)
        done = a_settled_call(call)
        for step in (
            reply_step(claimed.run, call, at=at),
            settle_step(claimed.run, done),
            answer_step(claimed.run, done, at=at),
            finish_step(claimed.run, at=at),
        ):
            await self.stores.journal.commit(claimed.lease, step)
        return await stored(self.stores, run.id, of)

    async def remove_oldest(self, idle_before: Mapping[OrganizationId, datetime], *, few: int = 0) -> bool:
        months = SqlRunMonths(database=self.database, few=few)
        oldest = await months.oldest()
        assert oldest is not None
        return await months.remove(oldest, idle_before)

    async def seen(self, run: Run) -> tuple[int, tuple[ToolCall, ...]]:
        """How many events the run has, and its calls."""
        of = run.organization_id
        events = await self.stores.runs.events(of, run.id, after_seq=0, limit=100)
        return len(events), await self.stores.runs.tool_calls(of, run.id)

    def partitions_of(self, run: Run) -> tuple[str, str]:
        return partition_of(self.url, "run_event", run.id), partition_of(self.url, "tool_call", run.id)

    def months(self, table: str) -> list[str]:
        return [month for month in months_of(self.url, table) if month in map(name_of, (OLDEST, NEXT, LAST))]


@pytest.fixture
async def runs(postgres_databases: PostgresDatabases) -> AsyncIterator[Runs]:
    with with_ended_months(postgres_databases, 3) as url:
        database = PostgresDatabase(url, connections=3, lock_wait_s=60)
        async with opened(database, an_organization(ORG), an_organization(OTHER_ORG)) as stores:
            for number, (of, agent_id) in enumerate(AGENTS.items()):
                await stores.agents.add(
                    an_agent(agent_id, organization_id=of), an_audit_event(number, organization_id=of)
                )
            yield Runs(url, database, stores)


async def test_all_of_a_run_lies_in_the_month_in_which_it_was_created(runs: Runs) -> None:
    in_next = await runs.run(moment_in(NEXT))
    called = await runs.run(moment_in(LAST), run_id=RunId(derived_id("run", "agent", "gws_1", "call_1")))

    assert runs.partitions_of(in_next) == (name_of(NEXT), name_of(NEXT))
    assert runs.partitions_of(called) == ("rest", "rest"), "an id without a moment"
    for one in (in_next, called):
        count, calls = await runs.seen(one)
        assert (count, len(calls)) == (one.last_seq, 1)


async def test_numbers_of_events_and_ids_of_calls_are_unique_in_each_run_and_belong_to_a_run(runs: Runs) -> None:
    run = await runs.run(moment_in(NEXT))
    copies = (
        "INSERT INTO run_event SELECT * FROM run_event WHERE run_id = :run AND seq = 1",
        "INSERT INTO tool_call SELECT * FROM tool_call WHERE run_id = :run",
        "UPDATE run_event SET run_id = 'run_none' WHERE run_id = :run AND seq = 1",
        "UPDATE tool_call SET run_id = 'run_none' WHERE run_id = :run",
    )
    for copy in copies:
        with pytest.raises(IntegrityError):
            await runs.database.write(
                lambda connection, copy=copy: connection.execute(text(copy), {"run": run.id}),  # type: ignore[misc]
                scope=SYSTEM,
            )


async def test_a_month_goes_with_its_partitions_before_its_threads_do(runs: Runs) -> None:
    old = [await runs.run(moment_in(OLDEST)) for _ in range(3)]
    await runs.run(moment_in(OLDEST), of=OTHER_ORG)
    recent = await runs.run(moment_in(LAST))
    before = await runs.seen(recent)
    when = moment_in(NEXT, 1)

    assert await runs.remove_oldest({ORG: when, OTHER_ORG: when})

    for table in ("run_event", "tool_call"):
        assert runs.months(table) == [name_of(NEXT), name_of(LAST)]
    assert [await runs.seen(run) for run in old] == [(0, ())] * 3
    assert await runs.seen(recent) == before
    thread = old[0].thread_id
    assert (await runs.stores.retention.remove(ORG, thread, when)).runs == 1
    assert await runs.stores.runs.get(ORG, old[0].id) is None


async def test_few_runs_on_threads_in_use_stay_when_their_month_goes_and_many_keep_it(runs: Runs) -> None:
    when = moment_in(NEXT, 1)
    thread = await runs.thread(moment_in(OLDEST))
    in_use = await runs.run(moment_in(OLDEST), thread)
    await runs.run(moment_in(LAST), thread)
    theirs = await runs.run(moment_in(OLDEST), of=OTHER_ORG)
    before = [await runs.seen(run) for run in (in_use, theirs)]
    for _ in range(17):
        await runs.run(moment_in(OLDEST))
    assert not await runs.remove_oldest({ORG: when}), "two of 19 are more than a tenth"
    assert runs.months("run_event") == [name_of(month) for month in (OLDEST, NEXT, LAST)]

    await runs.run(moment_in(OLDEST))
    assert await runs.remove_oldest({ORG: when})

    assert [await runs.seen(run) for run in (in_use, theirs)] == before
    assert runs.partitions_of(in_use) == runs.partitions_of(theirs) == ("gone", "gone")


async def test_a_thread_in_use_for_long_keeps_no_month(runs: Runs) -> None:
    thread = await runs.thread(moment_in(OLDEST))
    stays = [await runs.run(moment_in(month), thread) for month in (OLDEST, NEXT)]
    await runs.run(NOW, thread)
    before = [await runs.seen(run) for run in stays]
    when = {ORG: moment_in(LAST, 1)}
    assert not await runs.remove_oldest(when, few=sum(count for count, _ in before[:1]) - 1)

    assert await runs.remove_oldest(when, few=FEW)
    assert await runs.remove_oldest(when, few=FEW)

    assert [runs.months(table) for table in ("run_event", "tool_call")] == [[name_of(LAST)]] * 2
    assert [await runs.seen(run) for run in stays] == before


async def test_a_month_without_tool_calls_goes(runs: Runs) -> None:
    at = moment_in(OLDEST)
    run = a_run(RunId(an_id("run", at)), thread_id=await runs.thread(at), created_at=at)
    claimed = await start_and_claim(runs.stores, run)
    await runs.stores.journal.commit(claimed.lease, finish_step(claimed.run, at=at))
    await runs.run(moment_in(LAST))
    await SqlMonthlyTables(database=runs.database).remove_empty_months()
    before = [runs.months(table) for table in ("run_event", "tool_call")]
    assert before == [[name_of(month) for month in (OLDEST, NEXT, LAST)], [name_of(LAST)]]

    assert await runs.remove_oldest({ORG: moment_in(NEXT, 1)})

    assert [runs.months(table) for table in ("run_event", "tool_call")] == [before[0][1:], before[1]]


async def test_a_thread_that_is_used_again_while_its_month_goes_keeps_its_events(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await runs.thread(moment_in(OLDEST))
    old = [await runs.run(moment_in(OLDEST), thread), *[await runs.run(moment_in(OLDEST)) for _ in range(9)]]
    before = [await runs.seen(run) for run in old]
    when = {ORG: moment_in(NEXT, 1)}
    loop = asyncio.get_running_loop()

    def remove(connection: Connection, of: str, month: str, *, expected: int, kept: Sequence[str]) -> None:
        """A run begins after those that stay were chosen."""
        asyncio.run_coroutine_threadsafe(runs.run(NOW, thread), loop).result(60)
        monkeypatch.undo()
        remove_month(connection, of, month, expected=expected, kept=kept)

    monkeypatch.setattr(run_months, "remove_month", remove)
    with refused("storage_unavailable"):
        await runs.remove_oldest(when)
    assert [await runs.seen(run) for run in old] == before

    assert await runs.remove_oldest(when)
    assert [await runs.seen(run) for run in old] == [before[0], *[(0, ())] * 9]


async def test_an_unfinished_run_continues_after_its_month_has_gone(runs: Runs) -> None:
    waiting, (call,) = await start_and_suspend(
        runs.stores,
        a_run(
            RunId(an_id("run", moment_in(OLDEST))),
            thread_id=await runs.thread(moment_in(OLDEST)),
            created_at=moment_in(OLDEST),
        ),
    )
    for _ in range(9):
        await runs.run(moment_in(OLDEST))

    assert await runs.remove_oldest(EVERYTHING_GOES)

    assert runs.partitions_of(waiting) == ("gone", "gone")
    count, (found,) = await runs.seen(waiting)
    assert (count, found) == (waiting.last_seq, call)


async def test_deleting_runs_deletes_their_events_and_calls_in_all_months(runs: Runs) -> None:
    for month in (OLDEST, LAST):
        await runs.run(moment_in(month))
    await runs.database.write(lambda connection: connection.execute(text("DELETE FROM thread")), scope=SYSTEM)
    count = text("SELECT (SELECT count(*) FROM run_event) + (SELECT count(*) FROM tool_call)")
    assert await runs.database.read(lambda connection: connection.execute(count).scalar_one(), scope=SYSTEM) == 0
    await SqlMonthlyTables(database=runs.database).remove_empty_months()
    assert [runs.months(table) for table in ("run_event", "tool_call")] == [[], []]


READS: Mapping[str, Callable[[Stores, RunId], Awaitable[Sequence[object]]]] = {
    "run_event": lambda stores, run_id: stores.runs.events(ORG, run_id, after_seq=0, limit=100),
    "tool_call": lambda stores, run_id: stores.runs.tool_calls(ORG, run_id),
}


@pytest.mark.parametrize("table", list(READS))
async def test_what_a_removal_moves_while_a_reader_waits_for_it_is_not_missing(runs: Runs, table: str) -> None:
    run = await runs.run(moment_in(OLDEST))
    expected = await READS[table](runs.stores, run.id)
    assert expected
    with psycopg.connect(runs.url) as remover:
        remover.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        month = f"{table}_{name_of(OLDEST)}"
        remover.execute("SELECT remove_month(%s, %s, %s, %s)", (table, month, len(expected), [run.id]))
        reading = asyncio.ensure_future(READS[table](runs.stores, run.id))
        async with asyncio.timeout(60):
            while not await runs.database.read(partial(_is_waited_for, table), scope=SYSTEM):
                assert not reading.done()
        remover.commit()
        assert await reading == expected


def _is_waited_for(table: str, connection: Connection) -> bool:
    waiting = text(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = CAST(:of AS regclass) AND NOT granted AND mode = 'AccessShareLock')"
    )
    return bool(connection.execute(waiting, {"of": table}).scalar_one())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM run_event WHERE organization_id = 'org_1' AND run_id = $1 AND seq > 5 ORDER BY seq LIMIT 100",
        "SELECT type FROM run_event WHERE run_id = $1 ORDER BY seq DESC LIMIT 1",
        "SELECT * FROM tool_call WHERE run_id = $1 AND message_id IS NULL ORDER BY turn, position",
        "UPDATE tool_call SET state = 'settled' WHERE id = 'call_1' AND run_id = $1 AND state <> 'settled'",
        "DELETE FROM run_event WHERE run_id = $1",
    ],
)
async def test_statements_of_a_run_read_one_partition_by_its_index_and_are_planned_once(
    runs: Runs, statement: str
) -> None:
    with psycopg.connect(runs.url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        for setting in PLANS_BY_KEYS.items():
            connection.execute("SELECT set_config(%s, %s, false)", setting)
        connection.execute(f"PREPARE one(text) AS {statement}".encode())
        plan = "\n".join(str(line) for (line,) in connection.execute("EXPLAIN (COSTS OFF) EXECUTE one('run_01zz')"))
    assert "Subplans Removed" in plan, plan
    assert plan.count("Index Scan") == 1, plan
    assert "Seq Scan" not in plan, plan


@pytest.mark.parametrize("is_by_keys", [True, False])
async def test_units_by_keys_plan_a_statement_once_and_others_for_their_values(runs: Runs, is_by_keys: bool) -> None:
    def unit(connection: object) -> dict[str, str]:
        return {name: connection.execute(text(f"SHOW {name}")).scalar_one() for name in PLANS_BY_KEYS}  # type: ignore[attr-defined]

    found = [
        await use(ByKeys(unit) if is_by_keys else unit, scope=ORG)
        for use in (runs.database.read, runs.database.write, runs.database.read)
    ]
    ordinary = {"plan_cache_mode": "auto", "enable_seqscan": "on"}
    assert found == [PLANS_BY_KEYS if is_by_keys else ordinary] * 3


async def test_on_sqlite_there_are_no_months_of_runs(sqlite: Database) -> None:
    months = SqlRunMonths(database=sqlite)
    assert await months.oldest() is None
