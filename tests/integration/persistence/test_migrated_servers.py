"""MCP servers stored by earlier revisions, after the schema moved on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from alembic import command
from sqlalchemy import text

from infrastructure.persistence.schema.revision import plain_engine
from infrastructure.persistence.schema.upgrade import configuration, upgrade
from tests.databases import PostgresDatabases, sqlite_url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of each kind of database, without tables."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield sqlite_url(tmp_path / "dragoman.db")
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            yield stack.enter_context(databases.empty())


@pytest.mark.requirement("B2")
def test_a_server_of_before_there_were_installations_stays_and_is_not_installed(empty_database: str) -> None:
    engine = plain_engine(empty_database)
    with engine.begin() as connection:
        command.upgrade(configuration(connection), "0001")
        connection.execute(text("INSERT INTO organization (id, name, created_at) VALUES ('org_1', 'default', 1)"))
        connection.execute(
            text(
                "INSERT INTO mcp_server (id, organization_id, slug, version, config, secrets, created_at, updated_at)"
                " VALUES ('mcp_1', 'org_1', 'files', 3, '{}', :secrets, 1, 2)"
            ),
            {"secrets": b"sealed"},
        )
    assert upgrade(empty_database)
    with engine.connect() as connection:
        row = connection.execute(
            text("SELECT slug, version, secrets, installed_version, installed_location, installed_at FROM mcp_server")
        ).one()
    engine.dispose()
    assert (*row[:2], bytes(row[2]), *row[3:]) == ("files", 3, b"sealed", None, None, None)
