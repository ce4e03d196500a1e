"""Two organizations register the same client of an issuer at the same time, each in a process of
its own."""

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import Connection, text

from domain.identity.identity_provider import IdentityProvider
from domain.ids import IdentityProviderId
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.identity.provider_store import SqlIdentityProviderStore
from tests.builders import ORG, OTHER_ORG, an_audit_event, numbered
from tests.contract.sql_legs import MirrorBox
from tests.databases import PostgresDatabases
from tests.integration.persistence.test_rows_kept_by_two_processes import process
from tests.people_builders import ISSUER, a_provider
from tests.refusals import refused

_WAITING = text(
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
)


class _Pausing(SqlIdentityProviderStore):
    """Waits between its check of the audiences and its commit."""

    checked = threading.Event()
    go_on = threading.Event()

    def _require_free(self, connection: Connection, provider: IdentityProvider) -> None:
        super()._require_free(connection, provider)
        self.checked.set()
        assert self.go_on.wait(60)


@pytest.mark.requirement("P1")
async def test_an_audience_is_given_to_one_of_two_that_ask_at_the_same_time(
    postgres_databases: PostgresDatabases,
) -> None:
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_databases.fresh())
        here = await stack.enter_async_context(process(url, "here", ORG, OTHER_ORG))
        there = await stack.enter_async_context(process(url, "there"))
        pausing = _Pausing(database=here.database, box=MirrorBox())
        first = asyncio.create_task(pausing.add(a_provider(), an_audit_event(1)))
        assert await asyncio.to_thread(pausing.checked.wait, 60)
        other = a_provider(IdentityProviderId(numbered("idp", 2)), organization_id=OTHER_ORG)

        def waiting(connection: Connection) -> int:
            return int(connection.execute(_WAITING).scalar_one())

        second = asyncio.create_task(there.stores.identity_providers.add(other, an_audit_event(2)))
        async with asyncio.timeout(60):
            while not second.done() and not await there.database.read(waiting, scope=SYSTEM):  # noqa: ASYNC110  # nobody announces it
                await asyncio.sleep(0.01)
        pausing.go_on.set()
        await first
        with refused("identity_provider_audience_taken"):
            await second
        assert await there.stores.identity_providers.of_issuer(ISSUER) == (a_provider(),)
