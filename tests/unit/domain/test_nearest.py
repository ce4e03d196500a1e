"""The name that was probably meant: found among similar ones, within a bounded time whatever the
names are."""

import pytest

from domain.nearest import nearest
from tests.processor_time import processor_time


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("instrutions", ["name", "instructions", "model"], "instructions"),
        ("fils", ["files", "fills", "mail"], "files"),
        ("files", ["mail", "tickets"], None),
        ("files", [], None),
        ("", ["files"], None),
        ("files", ["x" * 5_000, "filess"], "filess"),
        ("x" * 5_000, ["x" * 5_000], None),
    ],
)
def test_the_most_similar_name_is_found(name: str, options: list[str], found: str | None) -> None:
    assert nearest(name, options) == found


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ba" * 50, [f"{'ab' * 47}{number:04}" for number in range(5_000)]),
        ("a" * 100, ["a" * 99] * 5_000),
        ("ab" * 20, ["ba" * 20] * 100_000),
        ("ab" * 20, ["x" * 9_000_000] * 500),
    ],
)
def test_names_made_to_take_long_are_compared_only_so_far(name: str, options: list[str]) -> None:
    with processor_time(0.1):
        nearest(name, options)
