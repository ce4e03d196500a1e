"""Keeps docs/REQUIREMENTS.md and the tests' `requirement` marks saying the same, both ways.

`python -m tests.architecture.requirements_map` reports differences; with `--write` it rewrites the
lists of tests and keeps the prose.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path

DOCUMENT = Path("docs/REQUIREMENTS.md")
ROWS_PER_CHAPTER = {
    "A": 13,
    "B": 16,
    "C": 7,
    "D": 5,
    "E": 7,
    "F": 6,
    "G": 2,
    "H": 6,
    "K": 8,
    "P": 7,
    "S": 6,
    "U": 6,
    "X": 8,
}
ROW_IDS = tuple(f"{letter}{n}" for letter, last in ROWS_PER_CHAPTER.items() for n in range(1, last + 1))

_HEADING = re.compile(r"^### (?P<row>[A-Z]\d+)\b")
_STATE = re.compile(r"^State: (?P<state>.*)$")
_TEST = re.compile(r"^- `(?P<node>[^`]+)`$")


class State(StrEnum):
    PROVEN = "proven"
    PARTLY = "partly"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Mark:
    """A test (`tests/….py::[Class::]name`) that claims to prove `row`; `hollow` says why it cannot,
    if so."""

    node: str
    row: str
    hollow: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One section of the document: its heading and prose as they stand, its state, the tests it
    lists."""

    id: str
    prose: str
    state: str
    tests: tuple[str, ...]


# ---- the marks
# ------------------------------------------------------------------------------------------


def read_marks(root: Path) -> list[Mark]:
    """Every `requirement` mark on a test under `root`/tests, found without importing anything.

    A test in a suite class counts where a collected class inherits the suite: contract suites live
    in files of their own.
    """
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in sorted((root / "tests").rglob("*.py"))
        if "node_modules" not in path.parts
    }
    files = {
        path.relative_to(root): ast.parse(text, filename=str(path))
        for path, text in texts.items()
        if "requirement(" in text or "class " in text
    }
    inherited = _inherited_suites(files)
    return [mark for path, tree in files.items() for mark in _marks_of_file(path, tree, inherited)]


def _marks_of_file(path: Path, tree: ast.Module, inherited: frozenset[str]) -> Iterator[Mark]:
    file_marks = _module_marks(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _marks_of_test(node, path.as_posix(), file_marks, collected=_is_test_file(path))
        elif isinstance(node, ast.ClassDef):
            collected = (_is_test_file(path) and node.name.startswith("Test")) or node.name in inherited
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    marks = [*file_marks, *node.decorator_list]
                    yield from _marks_of_test(method, f"{path.as_posix()}::{node.name}", marks, collected=collected)


def _marks_of_test(
    function: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str, outer: Sequence[ast.expr], *, collected: bool
) -> Iterator[Mark]:
    marks = [*outer, *function.decorator_list]
    rows = [row for mark in function.decorator_list for row in _rows_of(mark)]
    if not function.name.startswith("test_"):
        if rows:
            yield Mark(f"{prefix}::{function.name}", rows[0], "is not a test")
        return
    hollow = None if collected else "is never collected by pytest"
    if any(_mark_name(mark) in {"skip", "xfail"} for mark in marks):
        hollow = "is skipped or expected to fail"
    for row in dict.fromkeys(row for mark in marks for row in _rows_of(mark)):
        yield Mark(f"{prefix}::{function.name}", row, hollow)


def _module_marks(tree: ast.Module) -> list[ast.expr]:
    """What a `pytestmark = …` at the top of a file holds."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            return list(node.value.elts) if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return []


def _mark_name(mark: ast.expr) -> str | None:
    target = mark.func if isinstance(mark, ast.Call) else mark
    name = ast.unparse(target)
    return name.removeprefix("pytest.mark.") if name.startswith("pytest.mark.") else None


def _rows_of(mark: ast.expr) -> list[str]:
    if _mark_name(mark) != "requirement" or not isinstance(mark, ast.Call):
        return []
    return [str(arg.value) if isinstance(arg, ast.Constant) else ast.unparse(arg) for arg in mark.args]


def _is_test_file(path: Path) -> bool:
    return fnmatch(path.name, "test_*.py") or fnmatch(path.name, "*_test.py")


def _inherited_suites(files: Mapping[Path, ast.Module]) -> frozenset[str]:
    """Names of the classes that some collected class inherits, directly or not."""
    bases: dict[str, set[str]] = {}
    pending: list[str] = []
    for path, tree in files.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
                bases.setdefault(node.name, set()).update(names)
                if _is_test_file(path) and node.name.startswith("Test"):
                    pending.extend(names)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(bases.get(name, ()))
    return frozenset(found)


# ---- the document
# --------------------------------------------------------------------------------------------------


def read_rows(text: str) -> list[Row]:
    """The document's sections, in its order. A section is a heading, prose, one `State:` line, then
    a list of tests."""
    return [_read_section(section) for section in _sections(text) if _HEADING.match(section)]


def _sections(text: str) -> list[str]:
    """The text cut before every heading; joined they are the text again."""
    return re.split(r"^(?=#)", text, flags=re.MULTILINE)


def _read_section(section: str) -> Row:
    heading = _HEADING.match(section)
    assert heading is not None
    prose: list[str] = []
    state = ""
    tests: list[str] = []
    for line in section.splitlines():
        if found := _STATE.match(line):
            state = found["state"]
        elif found := _TEST.match(line):
            tests.append(found["node"])
        else:
            prose.append(line)
    return Row(id=heading["row"], prose="\n".join(prose).strip(), state=state, tests=tuple(tests))


def render(row: Row) -> str:
    tests = "".join(f"- `{node}`\n" for node in row.tests)
    return f"{row.prose}\n\nState: {row.state}\n" + (f"\n{tests}" if tests else "")


def rewrite(text: str, marks: Sequence[Mark]) -> str:
    """`text` with each section's tests as marked. `proven` is a person's word: only tests that come
    or go move a state."""
    sections = _sections(text)
    for index, section in enumerate(sections):
        if _HEADING.match(section):
            trailing = "\n" if index + 1 < len(sections) else ""
            sections[index] = render(_with_marked_tests(_read_section(section), marks)) + trailing
    return "".join(sections)


def _with_marked_tests(row: Row, marks: Sequence[Mark]) -> Row:
    tests = _proofs(row.id, marks)
    if not tests:
        return replace(row, tests=(), state=State.OPEN)
    return replace(row, tests=tests, state=State.PARTLY if row.state == State.OPEN else row.state)


def _proofs(row_id: str, marks: Sequence[Mark]) -> tuple[str, ...]:
    return tuple(sorted({mark.node for mark in marks if mark.row == row_id and mark.hollow is None}))


# ---- the differences
# -----------------------------------------------------------------------------------------------


def problems(text: str, marks: Sequence[Mark]) -> list[str]:
    """What the document and the marks do not agree on, each as one sentence."""
    rows = read_rows(text)
    found = [f"{mark.node}, marked {mark.row}, {mark.hollow}" for mark in marks if mark.hollow]
    found += [f"{mark.node} is marked with the unknown row {mark.row!r}" for mark in marks if mark.row not in ROW_IDS]
    if [row.id for row in rows] != list(ROW_IDS):
        missing, extra = _difference(ROW_IDS, [row.id for row in rows])
        found.append(
            f"the document's rows are not A1 to {ROW_IDS[-1]}, each once, in order (missing {missing}, unexpected {extra})"
        )
    for row in rows:
        found += _problems_of_row(row, _proofs(row.id, marks))
    return found


def _problems_of_row(row: Row, marked: Sequence[str]) -> Iterator[str]:
    yield from (f"{row.id} lists {node}, which is no test with that mark" for node in row.tests if node not in marked)
    yield from (f"{row.id} does not list {node}, which is marked with it" for node in marked if node not in row.tests)
    if len(row.prose.splitlines()) < 2:
        yield f"{row.id} does not say what is owed"
    if row.state not in list(State):
        yield f"{row.id} has the state {row.state!r}; it is one of {', '.join(State)}"
    elif not row.tests and row.state != State.OPEN:
        yield f"{row.id} is {row.state} without a test"
    elif row.tests and row.state == State.OPEN:
        yield f"{row.id} has tests and is still open; it is at least partly proven"


def _difference(wanted: Sequence[str], given: Sequence[str]) -> tuple[str, str]:
    missing = [row for row in wanted if row not in given]
    extra = [row for index, row in enumerate(given) if row not in wanted or row in given[:index]]
    return ", ".join(missing) or "none", ", ".join(extra) or "none"


def main(arguments: Sequence[str], root: Path) -> int:
    marks = read_marks(root)
    document = root / DOCUMENT
    text = document.read_text(encoding="utf-8")
    if "--write" in arguments:
        text = rewrite(text, marks)
        document.write_text(text, encoding="utf-8")
    found = problems(text, marks)
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parents[2]))
