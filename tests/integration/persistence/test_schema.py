"""The tables of the code, the migrations, and how a start finds out that there is nothing to do."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.schema.revision import FIRST, HEAD, WORKS_WITH, is_current, plain_engine
from infrastructure.persistence.schema.upgrade import configuration, plan, upgrade
from infrastructure.persistence.tables import metadata
from tests.databases import PostgresDatabases, sqlite_url
from tests.integration.persistence.catalogs import catalog_of

MONTH = re.compile(r"_(rest|gone|later|\d{4}_\d{2})$")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of each kind of database, without tables."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield sqlite_url(tmp_path / "dragoman.db")
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            yield stack.enter_context(databases.empty())


def is_described(name: str | None, kind: str, parents: object) -> bool:
    """Not the index over the words of sources: SQLite's is a table with tables of its own,
    PostgreSQL's is of a kind that SQLite has not. Nor months of tables, which are named by the
    present."""
    return name is None or not (
        (kind == "table" and MONTH.search(name) is not None)
        or (kind == "table" and name.startswith("source_words"))
        or (kind == "index" and name == "ix_source_chunk_words")
    )


def test_the_migrations_build_exactly_the_tables_of_the_code(empty_database: str) -> None:
    upgrade(empty_database)
    engine = plain_engine(empty_database)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_name": is_described})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_partial_indices_keep_their_conditions(empty_database: str) -> None:
    """Autogenerate does not compare them."""
    upgrade(empty_database)
    engine = plain_engine(empty_database)
    with engine.connect() as connection:
        indices = {
            index["name"]: index
            for table in ("agent", "run", "audit_event", "approval")
            for index in inspect(connection).get_indexes(table)
        }
        dialect = connection.dialect.name
    engine.dispose()
    partial = {name: str(index["dialect_options"].get(f"{dialect}_where", "")) for name, index in indices.items()}
    assert {name for name, condition in partial.items() if condition} == {
        "uq_agent_name_in_use",
        "ix_agent_bounded",
        "ix_run_error",
        "ix_run_not_completed",
        "ix_run_queued",
        "ix_run_unfinished",
        "uq_run_active_thread",
        "ix_audit_event_decisions",
        "ix_audit_event_run_id",
        "ix_approval_pending",
    }
    assert "requires_action" in partial["uq_run_active_thread"]
    assert "queued" not in partial["uq_run_active_thread"]
    assert indices["uq_run_active_thread"]["unique"]


def test_a_database_is_migrated_once(empty_database: str) -> None:
    assert not is_current(empty_database)
    assert upgrade(empty_database)
    assert is_current(empty_database)
    assert not upgrade(empty_database)


def test_revisions_after_the_first_can_be_undone(empty_database: str) -> None:
    upgrade(empty_database)
    newest = catalog_of(empty_database)
    engine = plain_engine(empty_database)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), FIRST)
    engine.dispose()
    assert catalog_of(empty_database) != newest
    assert upgrade(empty_database)
    assert catalog_of(empty_database) == newest


def test_a_failing_migration_leaves_the_database_as_it_was(empty_database: str) -> None:
    engine = plain_engine(empty_database)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE run (in_the_way INTEGER)")
    with pytest.raises(ServiceError) as refused:
        upgrade(empty_database)
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["run"]
    engine.dispose()


def upgraded_by_newer_code(url: str, works_with: str) -> None:
    engine = plain_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '9999', works_with = '{works_with}'")
    engine.dispose()


@pytest.mark.requirement("K7")
def test_a_database_of_newer_code_that_does_not_work_with_this_one_is_refused_and_left_alone(
    empty_database: str,
) -> None:
    upgrade(empty_database)
    upgraded_by_newer_code(empty_database, "9998 9999")
    for refused_by in (upgrade, plan):
        with pytest.raises(ServiceError) as refused:
            refused_by(empty_database)
        assert (refused.value.code, refused.value.kind) == ("schema_unknown", ErrorKind.UNAVAILABLE)
        assert (
            f"a version that has schema revision 9998, which this one, of revision {HEAD}, lacks"
            in refused.value.detail
        )
    engine = plain_engine(empty_database)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one() == "9999"
    engine.dispose()


@pytest.mark.requirement("K7")
def test_no_revision_is_said_to_be_needed_that_this_code_has(empty_database: str) -> None:
    upgrade(empty_database)
    upgraded_by_newer_code(empty_database, f"{WORKS_WITH[0]} {HEAD}")
    with pytest.raises(ServiceError) as refused:
        upgrade(empty_database)
    assert refused.value.code == "schema_unknown"
    assert refused.value.detail.endswith("schema revision 9999, which is unknown to this version.")


@pytest.mark.requirement("K7")
def test_a_database_of_newer_code_that_works_with_this_one_is_used_as_it_is(empty_database: str) -> None:
    upgrade(empty_database)
    upgraded_by_newer_code(empty_database, f"{HEAD} 9999")
    assert is_current(empty_database)
    assert not upgrade(empty_database)
    planned = plan(empty_database)
    assert (planned.stored, planned.pending, planned.contracts) == (("9999",), (), False)


@pytest.mark.requirement("K7")
def test_an_older_revision_that_this_code_knows_is_upgraded_whatever_it_says_of_itself(empty_database: str) -> None:
    upgrade(empty_database)
    engine = plain_engine(empty_database)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), FIRST)
    engine.dispose()
    assert not is_current(empty_database)
    planned = plan(empty_database)
    assert (planned.stored, planned.pending[-1], planned.contracts) == ((FIRST,), HEAD, True)


def test_the_code_names_the_first_and_the_newest_revision() -> None:
    engine = plain_engine("sqlite://")
    with engine.connect() as connection:
        scripts = ScriptDirectory.from_config(configuration(connection))
        assert (scripts.get_bases(), scripts.get_heads()) == ([FIRST], [HEAD])
        assert min(each.revision for each in scripts.walk_revisions()) == FIRST
    engine.dispose()


def test_finding_out_that_nothing_is_to_be_done_does_not_import_alembic(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "dragoman.db")
    upgrade(url)
    program = (
        "import sys; from infrastructure.persistence.schema.revision import is_current;"
        " assert is_current(sys.argv[1]); assert not any(name.startswith('alembic') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, url], check=True, timeout=120)


def test_a_database_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    for url in (sqlite_url(tmp_path / "missing" / "x.db"), f"postgresql://nobody@/nothing?host={tmp_path}"):
        with pytest.raises(ServiceError) as refused:
            upgrade(url)
        assert refused.value.code == "storage_unavailable"
