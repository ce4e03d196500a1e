"""Units of work in stages: those that wait together share a transaction of PostgreSQL, and each
fails alone."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import Connection, bindparam, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.ids import OrganizationId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.engine.database import SYSTEM, Scope
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.prepared import Prepared, prepared_insert
from infrastructure.persistence.engine.staged import Staged, Stages
from infrastructure.persistence.identity.store import add_organization
from infrastructure.persistence.tables import audit_event, organization, thread
from infrastructure.persistence.threads.rows import add_thread
from tests.builders import ORG, OTHER_ORG, START, a_thread, a_thread_id, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import sql_stores
from tests.contract.test_gateway import a_call, opened
from tests.databases import PostgresDatabases
from tests.integration.persistence.conftest import add_first_organization
from tests.integration.persistence.units import Gate, thread_numbers

_transaction = Prepared(text("SELECT CAST(pg_current_xact_id() AS text)"))
_threads = Prepared(select(thread.c.id).order_by(thread.c.id))
_touch = Prepared(update(thread).where(thread.c.id == bindparam("of_thread")).values(metadata=bindparam("new")))

_patience = Prepared(text("SELECT current_setting('idle_in_transaction_session_timeout')"))
_as_logged_in = Prepared(text("RESET ROLE"))
_end_myself = Prepared(text("SELECT pg_terminate_backend(pg_backend_pid())"))


def adding(number: int, *, organization_id: OrganizationId = ORG, metadata: str = "") -> Staged[str]:
    """Adds thread `number`; the transaction it was added in."""

    def begin(connection: Connection) -> Stages[str]:
        asked = _transaction.ask(connection, {})
        yield
        add_thread(
            connection, a_thread(a_thread_id(number), organization_id=organization_id, metadata={"of": metadata})
        )
        yield
        row = asked.first()
        assert row is not None
        return str(row[0])

    return Staged(begin)


def failing(number: int) -> Staged[str]:
    """Adds thread `number`, then raises ValueError."""

    def begin(connection: Connection) -> Stages[str]:
        yield from adding(number).begin(connection)
        raise ValueError(number)

    return Staged(begin)


def seen() -> Staged[list[str]]:
    """The threads that this unit can see."""

    def begin(connection: Connection) -> Stages[list[str]]:
        asked = _threads.ask(connection, {})
        yield
        return [row.id for row in asked.typed()]

    return Staged(begin)


def asking_as_it_begins() -> Staged[str]:
    """What this unit can see, asked before its first stage, as steps that end a run lock its
    thread; and the transaction."""

    def begin(connection: Connection) -> Stages[str]:
        threads = _threads.ask(connection, {})

        def stages() -> Stages[str]:
            transaction = _transaction.ask(connection, {})
            yield
            row = transaction.first()
            assert row is not None
            return " ".join([row[0], *(row.id for row in threads.typed())])

        return stages()

    return Staged(begin)


async def together(
    database: PostgresDatabase, *units: Staged[Any], scopes: Callable[[int], Scope] = lambda _: ORG
) -> list[object]:
    """Each one's result or error; all wait before the first one begins."""
    writes = (database.write(unit, scope=scopes(index)) for index, unit in enumerate(units))
    return list(await asyncio.gather(*writes, return_exceptions=True))


async def test_units_that_wait_together_share_a_transaction(postgres: PostgresDatabase) -> None:
    transactions = await together(postgres, *(adding(number) for number in range(10)))
    assert len(set(transactions)) == 1
    assert await thread_numbers(postgres) == list(range(10))
    (later,) = await together(postgres, adding(10))
    assert later not in transactions


@pytest.mark.requirement("K4")
async def test_calls_of_the_gateway_share_a_transaction_with_each_other_and_with_units_of_runs(
    postgres: PostgresDatabase,
) -> None:
    stores = sql_stores(postgres)
    await stores.agents.add(an_agent(), an_audit_event(1, action=AuditAction.AGENT_CREATED))
    await opened(stores)
    *_, of_thread = await asyncio.gather(
        *(stores.gateway_ledger.intend(a_call(number)) for number in range(3)), postgres.write(adding(1), scope=ORG)
    )
    stored = text("SELECT DISTINCT CAST(xmin AS text) FROM gateway_call")
    transactions = await postgres.read(lambda c: c.execute(stored).scalars().all(), scope=SYSTEM)
    assert transactions == [of_thread]


async def test_more_units_than_a_transaction_holds_are_all_stored(postgres: PostgresDatabase) -> None:
    transactions = await together(postgres, *(adding(number) for number in range(50)))
    assert 1 < len(set(transactions)) < 10
    assert await thread_numbers(postgres) == list(range(50))


async def test_of_units_in_a_transaction_those_that_raise_fail_alone(postgres: PostgresDatabase) -> None:
    results = await together(postgres, adding(1), failing(2), adding(3), failing(4))
    assert [type(result) for result in results] == [str, ValueError, str, ValueError]
    assert await thread_numbers(postgres) == [1, 3]


async def test_a_violated_constraint_reaches_its_unit_alone_and_as_it_is(postgres: PostgresDatabase) -> None:
    await together(postgres, adding(2))
    results = await together(postgres, adding(1), adding(2), adding(3))
    assert isinstance(results[1], IntegrityError)
    assert [type(result) for result in results] == [str, IntegrityError, str]
    assert await thread_numbers(postgres) == [1, 2, 3]
    # And the next ones share transactions again.
    assert len(set(await together(postgres, adding(4), adding(5)))) == 1


async def test_units_of_two_organizations_in_a_transaction_see_and_write_only_their_own(
    postgres: PostgresDatabase,
) -> None:
    await postgres.write(lambda c: add_organization(c, an_organization(OTHER_ORG)), scope=SYSTEM)
    scopes = (ORG, OTHER_ORG)
    added = await together(
        postgres,
        *(adding(number, organization_id=scopes[number % 2]) for number in range(6)),
        scopes=lambda index: scopes[index % 2],
    )
    assert len(set(added)) == 1
    looked = await asyncio.gather(*(postgres.write(seen(), scope=scope) for scope in (ORG, OTHER_ORG, SYSTEM)))
    numbers = [[int(id_.removeprefix("thr_")) for id_ in ids] for ids in looked]
    assert numbers == [[0, 2, 4], [1, 3, 5], [0, 1, 2, 3, 4, 5]]
    trespassing, at_home = await together(
        postgres, adding(7, organization_id=OTHER_ORG), adding(8), scopes=lambda _: ORG
    )
    assert isinstance(trespassing, ServiceError)
    assert isinstance(trespassing.__cause__, DBAPIError)
    assert getattr(trespassing.__cause__.orig, "sqlstate", None) == "42501"
    assert isinstance(at_home, str)
    assert await thread_numbers(postgres) == [0, 1, 2, 3, 4, 5, 8]


async def test_what_a_unit_asks_as_it_begins_is_asked_for_its_organization(postgres: PostgresDatabase) -> None:
    await postgres.write(lambda c: add_organization(c, an_organization(OTHER_ORG)), scope=SYSTEM)
    await postgres.write(adding(1), scope=ORG)
    await postgres.write(adding(2, organization_id=OTHER_ORG), scope=OTHER_ORG)
    units = [asking_as_it_begins() for _ in range(3)]
    said = await together(postgres, *units, scopes=lambda index: (ORG, OTHER_ORG, SYSTEM)[index])
    transactions, seen_threads = zip(*(str(each).split(maxsplit=1) for each in said), strict=True)
    assert len(set(transactions)) == 1
    mine, theirs = a_thread_id(1), a_thread_id(2)
    assert seen_threads == (mine, theirs, f"{mine} {theirs}")


async def test_a_unit_that_wants_an_answer_at_once_has_a_transaction_of_its_own(postgres: PostgresDatabase) -> None:
    def impatient(ask: Callable[[Connection], object]) -> Staged[str]:
        def begin(connection: Connection) -> Stages[str]:
            transaction = yield from adding(1).begin(connection)
            ask(connection)
            return transaction

        return Staged(begin)

    for ask in (
        lambda connection: _threads.ask(connection, {}).typed(),
        lambda connection: _threads.ask(connection, {}).first(),
        lambda connection: _threads.ask(connection, {}).all(),
        lambda connection: connection.execute(select(organization.c.id)).all(),
    ):
        alone, one, another = await together(postgres, impatient(ask), adding(2), adding(3))
        assert isinstance(alone, str)
        assert alone not in (one, another)
        assert await thread_numbers(postgres) == [1, 2, 3]
        await postgres.write(lambda connection: connection.execute(thread.delete()), scope=ORG)


async def test_a_row_that_somebody_has_locked_holds_up_only_who_needs_it(postgres: PostgresDatabase) -> None:
    await together(postgres, adding(1))
    gate = Gate()

    def locking(connection: Connection) -> str:
        connection.execute(select(thread.c.id).where(thread.c.id == a_thread_id(1)).with_for_update())
        return gate.unit(connection)

    def touching(connection: Connection) -> Stages[str]:
        _touch.run(connection, {"of_thread": a_thread_id(1), "new": {}})
        yield
        return "touched"

    holding = asyncio.create_task(postgres.write(locking, scope=ORG))
    await asyncio.to_thread(gate.wait_begun)
    waiting = asyncio.create_task(postgres.write(Staged(touching), scope=ORG))
    others = await asyncio.wait_for(together(postgres, adding(2), adding(3)), 60)
    assert all(isinstance(transaction, str) for transaction in others)
    assert not waiting.done()
    gate.open()
    assert list(await asyncio.gather(holding, waiting)) == ["passed", "touched"]


async def test_groups_of_two_processes_that_wait_for_each_others_rows_all_end(
    postgres_databases: PostgresDatabases,
) -> None:
    def touching(first: int, second: int) -> Staged[str]:
        def begin(connection: Connection) -> Stages[str]:
            _touch.run(connection, {"of_thread": a_thread_id(first), "new": {}})
            yield
            _touch.run(connection, {"of_thread": a_thread_id(second), "new": {}})
            yield
            return "touched"

        return Staged(begin)

    with postgres_databases.fresh() as url:
        one, other = PostgresDatabase(url, connections=2), PostgresDatabase(url, connections=2)
        await asyncio.gather(one.start(), other.start())
        try:
            await one.write(add_first_organization, scope=SYSTEM)
            await together(one, adding(1), adding(2))
            for _ in range(5):
                ended = await asyncio.gather(
                    one.write(touching(1, 2), scope=ORG), other.write(touching(2, 1), scope=ORG)
                )
                assert list(ended) == ["touched", "touched"]
        finally:
            await asyncio.gather(one.stop(), other.stop())


async def test_a_process_that_stands_still_in_a_group_is_not_waited_for(postgres: PostgresDatabase) -> None:
    def begin(connection: Connection) -> Stages[str]:
        asked = _patience.ask(connection, {})
        yield
        row = asked.first()
        assert row is not None
        return str(row[0])

    assert await postgres.write(Staged(begin), scope=ORG) == "5s"


async def test_a_caller_that_leaves_before_its_unit_begins_has_withdrawn_it(postgres: PostgresDatabase) -> None:
    staying = asyncio.create_task(postgres.write(adding(1), scope=ORG))
    leaving = asyncio.create_task(postgres.write(adding(2), scope=ORG))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert leaving.cancelled()
    assert await thread_numbers(postgres) == [1]


async def test_a_caller_that_leaves_while_its_unit_runs_has_it_committed_and_its_followers_woken(
    postgres: PostgresDatabase,
) -> None:
    begun, woken = asyncio.Event(), asyncio.Event()

    def begin(connection: Connection) -> Stages[str]:
        begun.set()
        return (yield from adding(1).begin(connection))

    caller = asyncio.create_task(postgres.write(Staged(begin), scope=ORG, after_commit=lambda _: woken.set()))
    await asyncio.wait_for(begun.wait(), 60)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(woken.wait(), 60)
    assert await thread_numbers(postgres) == [1]


async def test_a_connection_the_server_closed_is_replaced(
    postgres: PostgresDatabase, postgres_databases: PostgresDatabases
) -> None:
    await together(postgres, adding(1))
    postgres_databases.end_sessions()
    assert [type(result) for result in await together(postgres, adding(2), adding(3))] == [str, str]
    assert await thread_numbers(postgres) == [1, 2, 3]


async def test_a_group_whose_connection_is_cut_in_the_middle_is_stored_once(postgres: PostgresDatabase) -> None:
    cuts: list[None] = []

    def begin(connection: Connection) -> Stages[str]:
        stages = adding(1).begin(connection)
        next(stages)
        yield
        if not cuts:
            cuts.append(None)
            # Only as the one who logged in may it end itself.
            _as_logged_in.run(connection, {})
            _end_myself.ask(connection, {})
        return (yield from stages)

    results = await together(postgres, Staged(begin), adding(2))
    assert [type(result) for result in results] == [str, str]
    assert await thread_numbers(postgres) == [1, 2]


async def test_more_than_a_socket_takes_at_once_is_stored_whole(postgres: PostgresDatabase) -> None:
    long = "ä" * 6_000_000
    await together(postgres, *(adding(number, metadata=long) for number in range(3)))
    stored = await postgres.read(lambda c: c.execute(select(thread.c.metadata)).scalars().all(), scope=ORG)
    assert [cast("dict[str, str]", kept) == {"of": long} for kept in stored] == [True] * 3


async def test_stopping_stores_what_waits(postgres: PostgresDatabase) -> None:
    waiting = [asyncio.create_task(postgres.write(adding(number), scope=ORG)) for number in range(20)]
    await asyncio.sleep(0)
    await postgres.stop()
    results = await asyncio.gather(*waiting)
    assert len(results) == 20
    await postgres.start()
    assert await thread_numbers(postgres) == list(range(20))


async def test_a_stop_that_is_cancelled_stores_what_waits(postgres: PostgresDatabase) -> None:
    waiting = [asyncio.create_task(postgres.write(adding(number), scope=ORG)) for number in range(20)]
    await asyncio.sleep(0)
    stopping = asyncio.create_task(postgres.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    results = await asyncio.wait_for(asyncio.gather(*waiting), 60)
    assert len(results) == 20
    await postgres.start()
    assert await thread_numbers(postgres) == list(range(20))


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("count", [1, 2, 3, 5, 21, 40])
async def test_rows_that_are_inserted_together_are_all_stored_as_they_are(
    postgres: PostgresDatabase, count: int
) -> None:
    insert = prepared_insert(thread)
    empty = dict.fromkeys(column.name for column in thread.columns)
    values = {"organization_id": ORG, "metadata": {"percent": "100 %(id)s", "of": "ä"}, "created_at": START}
    rows = [{**empty, **values, "id": a_thread_id(number)} for number in range(count)]

    def adding_all(connection: Connection) -> Stages[int]:
        answer = insert.run(connection, *rows)
        yield
        return answer.count

    assert await together(postgres, Staged(adding_all)) == [count]
    stored = await postgres.read(lambda c: c.execute(select(thread).order_by(thread.c.id)).all(), scope=SYSTEM)
    assert [row._asdict() for row in stored] == rows


@pytest.mark.requirement("K4")
async def test_entries_that_are_stored_already_are_left_out_of_those_that_are_stored_together(
    postgres: PostgresDatabase,
) -> None:
    def recording(*numbers: int) -> Staged[None]:
        def begin(connection: Connection) -> Stages[None]:
            record(connection, *(an_audit_event(number) for number in numbers))
            yield

        return Staged(begin)

    assert await together(postgres, recording(1, 2, 1), recording(2, 3, 4)) == [None, None]
    ids = select(audit_event.c.id).order_by(audit_event.c.id)
    assert await postgres.read(lambda c: c.execute(ids).scalars().all(), scope=SYSTEM) == [
        an_audit_event(number).id for number in (1, 2, 3, 4)
    ]
