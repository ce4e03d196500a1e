"""What holds for every test: the caller's environment does not reach it, and slow machines do not
fail it."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.databases import PostgresDatabases, SqliteFiles, postgres_server

# All of the code and all tests are loaded first, and stay: looking through them for garbage again
# and again, while they are loaded and after it, takes a fifth of a run's time.
gc.disable()

hypothesis.settings.register_profile("dragoman", deadline=None, print_blob=True)
hypothesis.settings.load_profile("dragoman")

# Programs by others that only tests import, kept out of the environment that the service runs in
# (`make peers`). At the end of the path: what both environments have is the service's.
TESTS = Path(__file__).parent
PEERS = TESTS.parent / ".venv-peers" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
sys.path.append(str(PEERS / "site-packages"))
pytest_plugins = ("llmock.pytest_plugin", "tests.completeness")

FOREIGN_PREFIXES = (
    "DRAGOMAN_",
    "OPENAI_",
    "ANTHROPIC_",
    "LANGFUSE_",
    "OTEL_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)
OPT_IN_PREFIX = "DRAGOMAN_TEST_"
SLOWS_EVERY_START = "PYTHONDONTWRITEBYTECODE"
"""With it each of the hundreds of processes that tests start compiles all of this code anew."""


LONGEST_FIRST = ("e2e", "documents", "integration", "contract", "unit", "architecture")
"""Few tests of the first kinds take minutes, many of the last ones a second: at the end of a run no
process waits long for another."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest. Processes of pytest-xdist are given files in this
    order (`--no-loadscope-reorder`)."""
    places = {kind: place for place, kind in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(TESTS).parts[0], 0))


def pytest_collection_finish() -> None:
    """From here on garbage is looked for in what tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def neutral_environment() -> Iterator[None]:
    """No setting, key, collector or proxy of the person who runs the tests; only `DRAGOMAN_TEST_…`
    is for them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith(FOREIGN_PREFIXES) and not name.startswith(OPT_IN_PREFIX):
                patch.delenv(name)
        patch.delenv(SLOWS_EVERY_START, raising=False)
        yield


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """Where fresh SQLite files come from."""
    return SqliteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[PostgresDatabases]:
    """Where fresh PostgreSQL databases come from; the server starts with the first test that
    asks."""
    with postgres_server() as url, PostgresDatabases(url).prepared() as databases:
        yield databases
