"""A model call is paid for while another run of the organization asks for its share of the daily
budget."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, Executable

from application.runs.ports import ClaimedRun
from application.usage.ports import Reservation
from domain.audit.event import AuditAction
from domain.runs.usage import ModelSpending, ModelUsage
from infrastructure.persistence.engine.database import SYSTEM, Scope, Unit
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.usage.store import SqlUsageStore
from tests.builders import AGENT, START, a_thread, a_thread_id, an_agent, an_audit_event
from tests.contract.run_steps import reply_step, run_number, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores

T = TypeVar("T")


class _Interrupted:
    """A connection on which something else happens right after the first sum was read."""

    def __init__(self, connection: Connection, happens: Callable[[], None]) -> None:
        self.dialect = connection.dialect
        self._connection = connection
        self._happens: Callable[[], None] | None = happens

    def execute(self, statement: Executable, parameters: dict[str, Any]) -> object:
        result = self._connection.execute(statement, parameters)
        if self._happens is not None and "sum(" in str(statement):
            happens, self._happens = self._happens, None
            happens()
        return result


class InterruptedDatabase(PostgresDatabase):
    """Writes of another database, each interrupted."""

    def __init__(self, database: PostgresDatabase, happens: Callable[[], None]) -> None:
        self._database = database
        self._happens = happens

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope = SYSTEM,
        after_commit: Callable[[T], None] | None = None,
    ) -> T:
        def interrupted(connection: Connection) -> T:
            return unit(_Interrupted(connection, self._happens))  # type: ignore[arg-type]

        return await self._database.write(
            interrupted,
            scope=scope,
            after_commit=after_commit,
        )


async def a_claimed_run(stores: Stores, number: int) -> ClaimedRun:
    thread_id = a_thread_id(number)
    await stores.threads.add(a_thread(thread_id))
    return await start_and_claim(stores, run_number(number, thread_id=thread_id))


def wants(amount: str) -> Reservation:
    return Reservation(
        agent_id=AGENT,
        day=START.date(),
        amount_usd=Decimal(amount),
        organization_budget_usd=Decimal(1),
        agent_budget_usd=None,
    )


@pytest.mark.requirement("A7")
async def test_what_is_paid_for_while_another_run_reserves_is_not_overlooked(postgres: PostgresDatabase) -> None:
    stores = sql_stores(postgres)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    first, second = await a_claimed_run(stores, 11), await a_claimed_run(stores, 12)
    assert await stores.reservations.reserve(first.lease, wants("0.60"))
    paid = ModelSpending(
        model="openai:a", usage=ModelUsage(cost_usd=Decimal("0.55")), at=START, still_reserved_usd=Decimal("0.02")
    )
    step = replace(reply_step(first.run), spent=(paid,))
    loop = asyncio.get_running_loop()

    def pay() -> None:
        asyncio.run_coroutine_threadsafe(stores.journal.commit(first.lease, step), loop).result(60)

    reservations = SqlUsageStore(database=InterruptedDatabase(postgres, pay))
    assert not await reservations.reserve(second.lease, wants("0.50")), "of one dollar 57 cents are gone"
    assert await stores.reservations.reserve(second.lease, wants("0.43"))
