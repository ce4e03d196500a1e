"""What holds for every test: the caller's environment does not reach it, and slow machines do not fail it."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.databases import PostgresDatabases, SqliteFiles, postgres_server

hypothesis.settings.register_profile("dragoman", deadline=None, print_blob=True)
hypothesis.settings.load_profile("dragoman")

FOREIGN_PREFIXES = (
    "DRAGOMAN_",
    "OPENAI_",
    "ANTHROPIC_",
    "LANGFUSE_",
    "OTEL_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
OPT_IN_PREFIX = "DRAGOMAN_TEST_"


@pytest.fixture(scope="session", autouse=True)
def neutral_environment() -> Iterator[None]:
    """No setting, key, collector or proxy of the person who runs the tests; only `DRAGOMAN_TEST_…` is for them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(FOREIGN_PREFIXES) and not name.startswith(OPT_IN_PREFIX):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """Where fresh SQLite files come from."""
    return SqliteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[PostgresDatabases]:
    """Where fresh PostgreSQL databases come from; the server starts with the first test that asks."""
    with postgres_server() as url, PostgresDatabases(url).prepared() as databases:
        yield databases
