"""A step of a run stores the same, and says the same, whether it shares a transaction of PostgreSQL
or has one of its own."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from sqlalchemy import Connection, select

from application.runs.ports import LeaseLost
from domain.audit.event import AuditAction
from domain.ids import WorkerId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import MultitaskStrategy, RunStatus
from infrastructure.persistence.engine.database import SYSTEM, Database, Scope, Unit
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.staged import Staged
from infrastructure.persistence.tables import metadata
from tests.builders import (
    RUN,
    START,
    a_new_run,
    a_run,
    a_run_id,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    an_audit_event,
)
from tests.contract.run_steps import claim, finish_step, reply_step, settle_step, start, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.contract.test_push_configs import CONFIG
from tests.databases import PostgresDatabases
from tests.integration.persistence.conftest import add_first_organization
from tests.webhook_builders import URL, a_webhook, announcing

T = TypeVar("T")
Story = Callable[[Stores], Awaitable[object]]


class EachAlone:
    """A database that does not see which units are in stages."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.stages_seen = 0

    async def start(self) -> None:
        await self._database.start()

    async def stop(self) -> None:
        await self._database.stop()

    def obstacle(self) -> str | None:
        return self._database.obstacle()

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        return await self._database.read(unit, scope=scope)

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope,
        after_commit: Callable[[T], None] | None = None,
    ) -> T:
        if isinstance(unit, Staged):
            self.stages_seen += 1
            unit = unit.__call__
        return await self._database.write(unit, scope=scope, after_commit=after_commit)


def a_delta(text: str) -> NewEvent:
    return NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": "msg_1", "text": text})


async def a_whole_run(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    call = a_tool_call()
    replied = await stores.journal.commit(claimed.lease, reply_step(claimed.run, call, text="ä\0\ud800 %s $1"))
    await stores.journal.append(claimed.lease, (a_delta("more"),))
    settled = await stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(call)))
    ended = await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    return claimed, replied, settled, ended


async def a_run_on_a_new_thread(stores: Stores) -> object:
    begun = a_thread(a_thread_id(7), metadata={"ä": [None, True, 1.5, "\0"]})
    run = a_run(a_run_id(7), thread_id=begun.id)
    return await stores.runs.start(a_new_run(run, new_thread=begun))


async def runs_one_after_the_other(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    await start(stores, a_run(a_run_id(2), created_at=after(1)))
    none_yet = await stores.leases.claim(a_run_id(2), WorkerId("wrk_2"), lease_s=15, at=after(2))
    ended = await stores.journal.commit(claimed.lease, finish_step(claimed.run, RunStatus.FAILED))
    return none_yet, ended, await claim(stores, a_run_id(2), at=after(3))


async def a_run_whose_worker_was_lost(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, a_tool_call()))
    await stores.journal.append(claimed.lease, (a_delta("mo"),))
    found = await stores.leases.recoverable(at=after(60), limit=10)
    again = await claim(stores, RUN, worker_id=WorkerId("wrk_2"), at=after(61))
    with pytest.raises(LeaseLost):
        await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    with pytest.raises(LeaseLost):
        await stores.journal.append(claimed.lease, (a_delta("re"),))
    return found, again


async def a_call_that_nobody_made(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    call = a_tool_call()
    for wrong in (
        settle_step(claimed.run, a_settled_call(call)),
        replace(reply_step(claimed.run), changed=(call,)),
    ):
        with pytest.raises(ValueError, match="has not all of these calls"):
            await stores.journal.commit(claimed.lease, wrong)
    return claimed


async def a_run_with_a_webhook(stores: Stores) -> object:
    claimed = await start_and_claim(stores, announcing(None, a_webhook(URL)))
    return await stores.journal.commit(claimed.lease, finish_step(claimed.run))


async def a_run_with_a_push_config(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    await stores.push_configs.put(CONFIG, an_audit_event(81, action=AuditAction.PUSH_CONFIG_CREATED))
    ended = await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert ended.has_announced
    return ended


async def a_run_that_is_rolled_back(stores: Stores) -> object:
    claimed = await start_and_claim(stores)
    await stores.journal.commit(claimed.lease, reply_step(claimed.run))
    await start(stores, a_run(a_run_id(2), created_at=after(1)), strategy=MultitaskStrategy.ROLLBACK)
    return await stores.journal.commit(claimed.lease, finish_step(claimed.run))


async def everything(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """All rows, by table."""

    def unit(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
        return {
            table.name: [
                tuple(row) for row in connection.execute(select(*table.columns).order_by(*table.primary_key.columns))
            ]
            for table in metadata.sorted_tables
        }

    return await database.read(unit, scope=SYSTEM)


async def told(story: Story, stores: Stores, database: PostgresDatabase) -> tuple[object, object]:
    """What the story is answered, and all that is stored after it."""
    await database.write(add_first_organization, scope=SYSTEM)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    return await story(stores), await everything(database)


@pytest.mark.parametrize(
    ("story", "undone"),
    [
        (a_whole_run, 0),
        (a_run_on_a_new_thread, 0),
        (runs_one_after_the_other, 0),
        (a_run_whose_worker_was_lost, 2),
        (a_call_that_nobody_made, 2),
        (a_run_with_a_webhook, 0),
        (a_run_with_a_push_config, 0),
        (a_run_that_is_rolled_back, 0),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
async def test_steps_store_and_answer_the_same_in_a_group_and_alone(
    story: Story, undone: int, postgres_databases: PostgresDatabases, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "infrastructure.persistence.engine.postgres.group")
    found = []
    with postgres_databases.fresh() as url, postgres_databases.fresh() as other_url:
        grouping, single = PostgresDatabase(url, connections=2), PostgresDatabase(other_url, connections=2)
        alone = EachAlone(single)
        for database, stores in ((grouping, sql_stores(grouping)), (single, sql_stores(alone))):
            await database.start()
            try:
                found.append(await told(story, stores, database))
            finally:
                await database.stop()
    assert alone.stages_seen > 0
    assert found[0] == found[1]
    # Only what cannot be stored has to go on alone.
    assert sum("is undone" in record.message for record in caplog.records) == undone
