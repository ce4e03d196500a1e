"""Prose in Markdown is wrapped, as the linter holds it for docstrings and comments."""

from pathlib import Path

import pytest

from tests.architecture.prose import MAX_WIDTH, too_long
from tests.architecture.published_files import tracked_files

ROOT = Path(__file__).parents[2]
WRITTEN_BY_PROGRAMS = {Path("docs/performance.md")}
LONG = "word " * 21


def test_no_line_of_prose_is_too_long() -> None:
    pages = [path for path in tracked_files(ROOT) if path.suffix == ".md" and path not in WRITTEN_BY_PROGRAMS]
    found = [f"{page}:{number}" for page in pages for number in too_long((ROOT / page).read_text(encoding="utf-8"))]
    assert not found, f"more than {MAX_WIDTH} characters: " + ", ".join(found)


@pytest.mark.parametrize("line", [LONG, f"- {LONG}", f"  {LONG}", f"<http://a.example> {LONG}"])
def test_a_long_line_is_found_by_its_number(line: str) -> None:
    assert list(too_long(f"short\n\n```sh\n{LONG}\n```\n{line}\n")) == [6]


@pytest.mark.parametrize(
    "line", ["x" * 101, f"- `{'x' * 101}`", f"| {LONG} |", f"# {LONG}", f"<!-- {LONG} -->", "x" * 100]
)
def test_what_cannot_be_broken_is_left(line: str) -> None:
    assert list(too_long(line)) == []
