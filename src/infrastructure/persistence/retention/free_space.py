"""Returns the space of removed rows to the file system. PostgreSQL's autovacuum does so itself."""

from sqlalchemy import Connection

from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.sqlite.vacuum import give_back

PAGES_IN_A_STEP = 500


class SqlFreeSpace:
    """The `FreeSpace` port."""

    def __init__(self, *, database: Database, pages: int = PAGES_IN_A_STEP) -> None:
        self._database = database
        self._pages = pages

    async def give_back(self) -> bool:

        def unit(connection: Connection) -> bool:
            return connection.dialect.name == "sqlite" and give_back(connection, at_most=self._pages)

        return await self._database.write(unit, scope=SYSTEM)
