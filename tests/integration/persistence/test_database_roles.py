"""The two roles on PostgreSQL: who may create them, and what is said where they are missing."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from sqlalchemy import make_url, text

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.migrations.row_security import ensure_roles
from infrastructure.persistence.schema.readiness import DatabaseReadiness
from infrastructure.persistence.schema.revision import is_current, plain_engine
from infrastructure.persistence.schema.upgrade import upgrade
from tests.builders import ORG, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import opened
from tests.databases import PostgresDatabases


@contextmanager
def owner_of_a_database(databases: PostgresDatabases, attributes: str, *memberships: str) -> Iterator[str]:
    """The URL of an empty database, as the user who owns it."""
    with databases.user(attributes, *memberships) as user, databases.empty(owner=user.name) as url:
        yield user.of(url)


def test_who_may_create_roles_creates_them_and_may_act_as_them(postgres_databases: PostgresDatabases) -> None:
    with owner_of_a_database(postgres_databases, "CREATEROLE") as url:
        engine = plain_engine(url)
        with engine.connect() as connection, connection.begin() as transaction:
            for _ in range(2):
                ensure_roles(connection, "dragoman_test_one", "dragoman_test_two")
            for role in ("dragoman_test_one", "dragoman_test_two"):
                connection.execute(text(f"SET LOCAL ROLE {role}"))
                assert connection.execute(text("SELECT current_user")).scalar_one() == role
            transaction.rollback()
        engine.dispose()


def test_who_may_not_create_roles_is_told_what_an_administrator_has_to_run(
    postgres_databases: PostgresDatabases,
) -> None:
    with owner_of_a_database(postgres_databases, "") as url:
        engine = plain_engine(url)
        with engine.connect() as connection, pytest.raises(ServiceError) as refused:
            ensure_roles(connection, "dragoman_test_one", "dragoman_test_two")
        engine.dispose()
        user = make_url(url).username
    assert (refused.value.code, refused.value.kind) == ("database_roles_missing", ErrorKind.UNAVAILABLE)
    assert (
        "CREATE ROLE dragoman_test_one NOLOGIN; CREATE ROLE dragoman_test_two NOLOGIN;"
        f" GRANT dragoman_test_one, dragoman_test_two TO {user};"
    ) in refused.value.detail


@pytest.mark.parametrize("attributes", ["", "CREATEROLE"])
def test_roles_that_were_granted_to_others_stop_the_migration(
    postgres_databases: PostgresDatabases, attributes: str
) -> None:
    """On the server they exist, another database's user has made them."""
    with owner_of_a_database(postgres_databases, attributes) as url:
        with pytest.raises(ServiceError) as refused:
            upgrade(url)
        assert refused.value.code == "database_roles_missing"
        assert not is_current(url)


async def test_one_user_without_special_rights_migrates_and_serves(postgres_databases: PostgresDatabases) -> None:
    with owner_of_a_database(postgres_databases, "", REQUEST_ROLE, SYSTEM_ROLE) as url:
        assert upgrade(url)
        database = PostgresDatabase(url, connections=2)
        async with opened(database, an_organization(ORG)) as stores:
            await stores.agents.add(an_agent(), an_audit_event())
            await stores.threads.add(a_thread())
            assert await stores.threads.get(ORG, a_thread().id) == a_thread()
            assert await DatabaseReadiness(database=database).problems() == ()


def test_later_migrations_by_the_owner_reach_every_row(postgres_databases: PostgresDatabases) -> None:
    """Row security is forced on owners as well; only as a member of the system's role this one sees
    anything."""
    with owner_of_a_database(postgres_databases, "", REQUEST_ROLE, SYSTEM_ROLE) as url:
        upgrade(url)
        engine = plain_engine(url)
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO organization VALUES ('org_1', 'one', 1, true, 1, '{}')"))
            assert connection.execute(text("UPDATE organization SET version = 2")).rowcount == 1
        engine.dispose()


async def test_a_user_of_neither_role_is_refused_at_the_start(postgres_databases: PostgresDatabases) -> None:
    with ExitStack() as stack:
        user = stack.enter_context(postgres_databases.user(""))
        url = user.of(stack.enter_context(postgres_databases.fresh()))
        with pytest.raises(ServiceError) as refused:
            await PostgresDatabase(url).start()
    assert refused.value.code == "database_roles_missing"
    assert f"GRANT {REQUEST_ROLE}, {SYSTEM_ROLE}" in refused.value.detail


async def test_a_migrated_database_is_known_as_current_by_who_serves(postgres_databases: PostgresDatabases) -> None:
    with postgres_databases.fresh() as url:
        assert is_current(url)
        database = PostgresDatabase(url, connections=1)
        await database.start()
        assert await DatabaseReadiness(database=database).problems() == ()
        await database.stop()
