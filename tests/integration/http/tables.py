"""What the service's tables are in tests over HTTP: in memory, or in a PostgreSQL database."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from sqlalchemy import Connection

from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from infrastructure.container import Container
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.identity.store import add_organization, insert_key
from tests.composition import put_into
from tests.contract.stores import in_memory_stores
from tests.doubles.state import InMemoryState


class Tables(Protocol):
    """One kind of them. `state` is what is in memory; nothing, where they are in a database."""

    state: InMemoryState

    def put_into(self, container: Container) -> None:
        """Let the container's stores use them."""
        ...

    def open(self, organizations: Sequence[Organization], keys: Sequence[ApiKey]) -> AbstractAsyncContextManager[None]:
        """With these, and nothing else."""
        ...


class InMemoryTables:
    """In memory."""

    def __init__(self) -> None:
        self.state = InMemoryState()

    def put_into(self, container: Container) -> None:
        wakeups = container.wakeups()
        assert isinstance(wakeups, InProcessWakeups)
        put_into(container, in_memory_stores(self.state, wakeups))

    @asynccontextmanager
    async def open(self, organizations: Sequence[Organization], keys: Sequence[ApiKey]) -> AsyncIterator[None]:
        """Emptied before."""
        vars(self.state).update(vars(InMemoryState()))
        self.state.organizations = {organization.id: organization for organization in organizations}
        self.state.keys = {key.id: key for key in keys}
        yield


class PostgresTables:
    """In a database of this URL, as the ordinary user that requests act as; `empty` deletes all its
    rows."""

    def __init__(self, url: str, empty: Callable[[], None]) -> None:
        self.state = InMemoryState()
        self._database = PostgresDatabase(url, connections=4)
        self._empty = empty

    def put_into(self, container: Container) -> None:
        container.database.override(self._database)

    @asynccontextmanager
    async def open(self, organizations: Sequence[Organization], keys: Sequence[ApiKey]) -> AsyncIterator[None]:
        """Emptied afterwards."""

        def fill(connection: Connection) -> None:
            for organization in organizations:
                add_organization(connection, organization)
            for key in keys:
                insert_key(connection, key)

        await self._database.start()
        try:
            await self._database.write(fill, scope=SYSTEM)
            yield
        finally:
            await self._database.stop()
            self._empty()
