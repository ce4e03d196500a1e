"""A database that an earlier version created: it is upgraded to the schema of a new one, or
refused."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.schema.revision import FIRST, is_current, plain_engine, stored_schema
from infrastructure.persistence.schema.upgrade import upgrade
from tests.databases import PostgresDatabases, sqlite_url
from tests.integration.persistence.catalogs import catalog_of
from tests.saved_schema import REVISION, create_saved_schema

pytestmark = pytest.mark.requirement("E6", "E7")


@pytest.fixture(params=["sqlite", "postgres"])
def two_databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URLs of two empty databases of each kind."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield sqlite_url(tmp_path / "one.db"), sqlite_url(tmp_path / "other.db")
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            yield stack.enter_context(databases.empty()), stack.enter_context(databases.empty())


def revisions_in(url: str) -> list[str]:
    engine = plain_engine(url)
    with engine.connect() as connection:
        found = list(stored_schema(connection).revisions)
    engine.dispose()
    return found


def test_a_database_of_the_first_revision_is_upgraded_to_the_schema_of_a_new_one(
    two_databases: tuple[str, str],
) -> None:
    old, new = two_databases
    create_saved_schema(old)
    assert revisions_in(old) == [REVISION] == [FIRST]
    upgrade(old)
    upgrade(new)
    assert is_current(old)
    assert catalog_of(old) == catalog_of(new)


def test_a_database_of_an_earlier_revision_is_refused_and_left_alone(two_databases: tuple[str, str]) -> None:
    older = "0030"
    url, _ = two_databases
    upgrade(url)
    before = catalog_of(url)
    engine = plain_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{older}'")
    engine.dispose()
    with pytest.raises(ServiceError) as refused:
        upgrade(url)
    assert (refused.value.code, refused.value.kind) == ("schema_too_old", ErrorKind.UNAVAILABLE)
    assert older in refused.value.detail
    assert FIRST in refused.value.detail
    assert (revisions_in(url), catalog_of(url)) == ([older], before)
