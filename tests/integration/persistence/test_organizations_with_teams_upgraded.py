"""Revision 0111 on a database in which a group owns something already."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from alembic import command
from sqlalchemy import Connection, MetaData, Table, insert, select

from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.schema.revision import plain_engine
from infrastructure.persistence.schema.upgrade import configuration
from tests.builders import ORG, OTHER_ORG
from tests.databases import PostgresDatabases, sqlite_url

pytestmark = pytest.mark.requirement("E6", "E7")


@pytest.fixture(params=["sqlite", "postgres", "postgres, roles not inherited"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database, as who owns it."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield sqlite_url(tmp_path / "dragoman.db")
            return
        databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
        if request.param == "postgres":
            yield stack.enter_context(databases.empty())
            return
        owner = stack.enter_context(databases.user("NOINHERIT", REQUEST_ROLE, SYSTEM_ROLE))
        yield owner.of(stack.enter_context(databases.empty(owner=owner.name)))


def test_organizations_in_which_a_group_owns_something_are_noted(database: str) -> None:
    engine = plain_engine(database)
    with engine.begin() as connection:
        command.upgrade(configuration(connection), "0104")
    with engine.begin() as connection:
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql(f"SET LOCAL ROLE {SYSTEM_ROLE}")
        metadata = MetaData()
        metadata.reflect(connection, only=["organization", "mcp_server"])
        for organization_id, team in ((ORG, "finance"), (OTHER_ORG, None)):
            _add(connection, metadata.tables["organization"], id=organization_id)
            server = {"organization_id": organization_id, "id": f"mcp_{organization_id}", "team": team}
            _add(connection, metadata.tables["mcp_server"], **server)
    with engine.begin() as connection:
        command.upgrade(configuration(connection), "0111")
    with engine.begin() as connection:
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql(f"SET LOCAL ROLE {SYSTEM_ROLE}")
        organization = Table("organization", MetaData(), autoload_with=connection)
        stored = connection.execute(select(organization.c.id, organization.c.had_teams)).all()
    engine.dispose()
    assert {each: bool(had_teams) for each, had_teams in stored} == {ORG: True, OTHER_ORG: False}


def _add(connection: Connection, table: Table, **given: object) -> None:
    """A row with these values, and any in the other columns that need one."""
    needed = {
        column.name: column.type.python_type()
        for column in table.columns
        if not column.nullable and column.server_default is None
    }
    connection.execute(insert(table).values({**needed, **given}))
