"""An upgrade sees which code is connected to a PostgreSQL database, and waits for none that
continues to work."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from alembic import command

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.postgres.queue_schema import LIBRARY_SCHEMA, SCHEMA
from infrastructure.persistence.engine.postgres.url import library_url, named_url
from infrastructure.persistence.schema.revision import FIRST, HEAD, is_current, plain_engine
from infrastructure.persistence.schema.running_code import APPLICATION_NAME
from infrastructure.persistence.schema.upgrade import configuration, plan, upgrade
from tests.databases import PostgresDatabases

pytestmark = pytest.mark.requirement("K7")


@contextmanager
def connected(url: str, revision: str) -> Iterator[None]:
    """A process whose code has this revision."""
    named = library_url(named_url(url, APPLICATION_NAME.replace(HEAD, revision)))
    with psycopg.connect(named):
        yield


@pytest.fixture
def older(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """A database of the first revision."""
    with postgres_databases.empty() as url:
        upgrade(url)
        engine = plain_engine(url)
        with engine.begin() as connection:
            command.downgrade(configuration(connection), FIRST)
        engine.dispose()
        yield url


def test_an_upgrade_waits_for_processes_that_could_not_work_with_the_new_schema(older: str) -> None:
    with connected(older, FIRST), connected(older, HEAD):
        planned = plan(older)
        assert (planned.running, planned.must_stop, planned.contracts) == ((FIRST, HEAD), (FIRST,), True)
        with pytest.raises(ServiceError) as refused:
            upgrade(older)
        assert (refused.value.code, refused.value.kind) == ("older_processes_running", ErrorKind.CONFLICT)
        assert FIRST in refused.value.detail
        assert not is_current(older)
        assert upgrade(older, despite_running=True)
    assert is_current(older)


def test_processes_that_work_with_the_new_schema_are_not_waited_for(older: str) -> None:
    with connected(older, HEAD):
        assert plan(older).must_stop == ()
        assert upgrade(older)


def test_processes_of_another_user_are_seen_too(postgres_databases: PostgresDatabases) -> None:
    # Sessions of tests before would be seen until the server has ended them.
    with postgres_databases.apart() as url, connected(postgres_databases.owner_url(url), FIRST):
        assert plan(url).running == (FIRST,)


def test_an_upgrade_that_waits_for_a_table_tries_again_later(older: str) -> None:
    with closing(psycopg.connect(older)) as long:
        # The server ends its transaction after the first try of the upgrade has been given up.
        long.execute("SET LOCAL idle_in_transaction_session_timeout = '4s'")
        long.execute("SELECT count(*) FROM run")
        assert upgrade(older)
    assert is_current(older)


def test_an_upgrade_that_waits_for_a_table_of_the_queue_tries_again_later(older: str) -> None:
    with closing(psycopg.connect(older)) as long:
        long.execute(f"COMMENT ON SCHEMA {SCHEMA} IS '{LIBRARY_SCHEMA}/3'".encode())
        long.commit()
        long.execute("SET LOCAL idle_in_transaction_session_timeout = '4s'")
        long.execute(f"LOCK TABLE {SCHEMA}.procrastinate_jobs".encode())
        assert upgrade(older)
    assert is_current(older)


def test_connections_are_called_by_their_revision_unless_the_address_names_them() -> None:
    assert named_url("postgresql://db/dragoman", "x-y").endswith("?application_name=x-y")
    assert named_url("postgresql://db/dragoman?application_name=mine", "x-y").endswith("=mine")
