"""What the API can do, the console can do: docs/console-coverage.md has a row for each operation of the OpenAPI document."""

import re
from pathlib import Path

import pytest

from interfaces.console.app import console_routes
from tests.integration.http.documented import operations

pytestmark = pytest.mark.requirement("U6")

PAGE = (Path(__file__).parents[3] / "docs" / "console-coverage.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([A-Z]+ [^`]+)` \| ([^|]+) \| (`[^`]+`|no|open) \| ([^|]*)\|$", PAGE, re.MULTILINE)
STILL_OPEN = 17
"""Operations that the console lacks: fewer are welcome, more are not."""


def test_each_operation_of_the_api_has_a_row_with_its_own_words() -> None:
    documented = {operation: str(described["summary"]) for operation, described in operations()}
    assert {operation: summary for operation, summary, _, _ in ROWS} == documented
    assert len(ROWS) == len(documented)


def test_each_route_that_the_page_names_is_one_of_the_console() -> None:
    known = {
        f"{method} {path.replace(':str', '')}"
        for route in console_routes()
        for path in route.paths
        for method in route.http_methods
    }
    named = {where.strip("`") for _, _, where, _ in ROWS if where not in ("no", "open")}
    assert named - known == set()


def test_what_the_console_does_not_have_says_why_and_no_more_is_missing() -> None:
    without = [(operation, where, note.strip()) for operation, _, where, note in ROWS if where in ("no", "open")]
    assert [operation for operation, _, note in without if not note] == []
    assert sum(where == "open" for _, where, _ in without) <= STILL_OPEN
