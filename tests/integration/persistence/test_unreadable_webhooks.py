"""A webhook delivery whose row cannot be read holds up no other."""

import logging
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from application.system.pages import PageRequest
from domain.ids import RunId
from domain.webhooks.delivery import WebhookEvent
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import ORG, START, a_run, a_run_id, a_thread, a_thread_id, after, an_agent, an_audit_event
from tests.contract.run_steps import finish_step, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import SqliteFiles
from tests.integration.persistence.conftest import add_first_organization
from tests.webhook_builders import a_webhook, announcing

LATER = after(60)


@pytest.fixture
async def database(sqlite_files: SqliteFiles) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(sqlite_files.fresh())
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    yield database
    await database.stop()


async def announced(stores: Stores, number: int) -> None:
    await stores.threads.add(a_thread(a_thread_id(number)))
    run = a_run(a_run_id(number), thread_id=a_thread_id(number))
    claimed = await start_and_claim(stores, announcing(run, a_webhook()))
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, at=claimed.run.created_at))


async def two_announced(database: SqliteDatabase, damage: str) -> Stores:
    """The delivery of run 1 has this damage."""
    stores = sql_stores(database)
    await stores.agents.add(an_agent(), an_audit_event())
    await announced(stores, 1)
    await announced(stores, 2)
    damaged = {"run_id": a_run_id(1)}
    await database.write(lambda connection: connection.execute(text(damage), damaged).close(), scope=SYSTEM)
    return stores


async def claimed_runs(stores: Stores) -> list[RunId | None]:
    claimed = await stores.webhooks.claim(at=START, until=LATER, limit=10, per_lane=10, busy={})
    return [each.delivery.run_id for each in claimed]


@pytest.mark.requirement("E7")
async def test_a_delivery_that_cannot_be_read_holds_up_no_other_and_is_looked_at_again(
    database: SqliteDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    damage = "UPDATE run_request SET webhook = '{\"what\": 1}' WHERE run_id = :run_id"
    stores = await two_announced(database, damage)
    with caplog.at_level(logging.ERROR):
        assert await claimed_runs(stores) == [a_run_id(2)]
    assert "cannot read webhook deliveries" in caplog.text
    again_at = await stores.webhooks.next_due(but=frozenset())
    assert again_at == LATER, "the one that was taken; the other is not due for a while"
    assert await claimed_runs(stores) == []


@pytest.mark.requirement("E7")
async def test_an_event_of_a_later_version_is_listed_and_left_to_its_processes_to_deliver(
    database: SqliteDatabase,
) -> None:
    damage = "UPDATE webhook_delivery SET event = 'run.of_another_version' WHERE run_id = :run_id"
    stores = await two_announced(database, damage)
    assert await claimed_runs(stores) == [a_run_id(2)]
    assert await stores.webhooks.next_due(but=frozenset()) == LATER
    [listed] = (await stores.webhooks.of_run(ORG, a_run_id(1), PageRequest())).items
    assert (listed.event, listed.attempts, listed.next_attempt_at) == (WebhookEvent.OTHER, 0, START)
