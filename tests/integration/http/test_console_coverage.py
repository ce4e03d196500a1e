"""What the API can do, the console can do: docs/console-coverage.md has a row for each operation of
the OpenAPI document."""

import re
from pathlib import Path

import pytest

from interfaces.console.app import console_routes
from tests.integration.http.documented import operations

pytestmark = pytest.mark.requirement("U6")

PAGE = (Path(__file__).parents[3] / "docs" / "console-coverage.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([A-Z]+ [^`]+)` \| ([^|]+) \| (`[^`]+`|no) \| ([^|]*)\|$", PAGE, re.MULTILINE)


def test_each_row_is_an_operation_of_the_api_with_its_words() -> None:
    documented = {operation: str(described["summary"]) for operation, described in operations()}
    rows = [(operation, summary) for operation, summary, _, _ in ROWS]
    assert [row for row in rows if documented.get(row[0]) != row[1]] == []
    assert len(rows) == len(dict(rows)) > 100


def test_each_route_that_the_page_names_is_one_of_the_console() -> None:
    known = {
        f"{method} {path.replace(':str', '')}"
        for route in console_routes()
        for path in route.paths
        for method in route.http_methods
    }
    named = {where.strip("`") for _, _, where, _ in ROWS if where != "no"}
    assert named - known == set()


def test_the_console_has_each_operation_or_the_page_says_why_not() -> None:
    assert {operation for operation, _ in operations()} - {operation for operation, _, _, _ in ROWS} == set()
    without = [(operation, note.strip()) for operation, _, where, note in ROWS if where == "no"]
    assert [operation for operation, note in without if not note] == []
