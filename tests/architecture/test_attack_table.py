"""docs/guides/attacks.md and security.md: every row names its tests, and every test they name is
there; every attack that is tried is a row of the former."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "guides" / "attacks.md"
THREATS = ROOT / "docs" / "guides" / "security.md"
_TEST = re.compile(r"`(tests/[^`:]+\.py)::(test_\w+)`")
_HEADER = re.compile(r"\| *attack *\||\|[-|]+\|")


@cache
def named_tests(path: Path) -> frozenset[str]:
    """The names of a file's test functions; none if there is no such file."""
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


def rows(document: str) -> list[str]:
    """The rows of the document's tables, without their heads."""
    return [line for line in document.splitlines() if line.startswith("|") and not _HEADER.match(line)]


def faults(document: str, root: Path) -> list[str]:
    """Rows without a test or an explanation, tests that are not there, and tests of attacks that no
    row names."""
    found = []
    named: set[tuple[str, str]] = set()
    for row in rows(document):
        attack, stands, tests, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        listed = _TEST.findall(tests)
        if not attack or not stands or not listed or _TEST.sub("", tests).strip(", "):
            found.append(f"not a row: {row[:80]}")
        found += [f"no such test: {path}::{name}" for path, name in listed if name not in named_tests(root / path)]
        named |= set(listed)
    tried = {
        (path.relative_to(root).as_posix(), name)
        for path in (root / "tests").rglob("test_attacks*.py")
        for name in named_tests(path)
    }
    return [*found, *(f"not in the table: {path}::{name}" for path, name in sorted(tried - named))]


def test_every_attack_has_its_tests_and_every_test_its_row() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert len(rows(document)) > 50
    assert faults(document, ROOT) == []


def test_every_threat_has_what_stops_it_and_the_tests_that_show_it() -> None:
    text = THREATS.read_text(encoding="utf-8").partition("## People and keys")[2]
    threats = [
        line for line in text.splitlines() if line.startswith("|") and not line.startswith(("| threat |", "|---"))
    ]
    assert len(threats) >= 30
    for row in threats:
        threat, stops, shown = (cell.strip() for cell in row.strip("|").split("|"))
        listed = _TEST.findall(shown)
        assert all((threat, stops, listed)), row[:80]
        assert [name for path, name in listed if name not in named_tests(ROOT / path)] == [], row[:80]


def test_what_is_missing_in_the_table_or_from_the_tests_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_attacks.py").write_text(
        "def test_a(): ...\nasync def test_b(): ...\n", encoding="utf-8"
    )
    head = "| attack | what stands in the way | tests |\n|---|---|---|\n"
    assert faults(f"{head}| x | y | `tests/test_attacks.py::test_a`, `tests/test_attacks.py::test_b` |", tmp_path) == []
    assert faults(f"{head}| x | y | `tests/test_attacks.py::test_c` |", tmp_path) == [
        "no such test: tests/test_attacks.py::test_c",
        "not in the table: tests/test_attacks.py::test_a",
        "not in the table: tests/test_attacks.py::test_b",
    ]
    assert faults(f"{head}| x | y | none yet |", tmp_path)[0] == "not a row: | x | y | none yet |"
