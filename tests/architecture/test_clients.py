"""The clients: what is generated is current, what is written by hand stays small."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.generate import CODEGEN, OPENAPI_TYPESCRIPT, PYTHON, TYPESCRIPT, generated, synchronous_client

GENERATED = {"models.py", "sync.py", "sync_agents.py", "sync_connection.py", "schema.ts"}
MOST_LINES = 600
"""Without empty ones."""
MOST_LINES_OF_AN_EXAMPLE = 25


def own_lines(folder: Path, ending: str) -> int:
    paths = [path for path in folder.glob(f"*.{ending}") if path.name not in GENERATED]
    return sum(bool(line.strip()) for path in paths for line in path.read_text(encoding="utf-8").splitlines())


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def examples() -> Iterator[Path]:
    return Path(__file__).resolve().parents[2].glob("examples/ask_clock.*")


@pytest.mark.skipif(not (CODEGEN.exists() and OPENAPI_TYPESCRIPT.exists()), reason="needs `make clients`")
def test_the_models_of_the_clients_are_those_of_the_openapi_document() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "`make clients` renews them"


def test_the_synchronous_client_is_the_asynchronous_one() -> None:
    made = synchronous_client()
    assert {path.name for path in made} == {"sync.py", "sync_agents.py", "sync_connection.py"}
    stale = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "`make clients` renews them"


@pytest.mark.requirement("U5")
@pytest.mark.parametrize(("folder", "ending"), [(PYTHON, "py"), (TYPESCRIPT / "src", "ts")])
def test_what_a_client_has_by_hand_is_small(folder: Path, ending: str) -> None:
    assert 300 < own_lines(folder, ending) <= MOST_LINES


@pytest.mark.requirement("U5")
def test_the_examples_of_the_clients_are_short() -> None:
    assert [(path.suffix, lines_of(path) <= MOST_LINES_OF_AN_EXAMPLE) for path in sorted(examples())] == [
        (".mjs", True),
        (".py", True),
    ]
