"""Sizes of regular expressions: repetitions are unrolled, whatever the text of the pattern is."""

import pytest

from infrastructure.schemas.pattern_size import MAX_SIZE, pattern_size
from tests.processor_time import processor_time


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        ("a{3}", 3),
        ("a{0,7}b", 8),
        ("a{2,}", 2),
        ("(ab){4}", 8),
        ("((a{10}b){10}){10}", 1_100),
        ("a{3}{3}", 9),
        ("[abc]{5}", 20),
        (r"[\]]{5}", 20),
        (r"\d{4}-\d{2}", 13),
        (r"\{3}", 3),
        ("a*b+c?", 3),
        ("(a|b)*", 3),
    ],
)
def test_a_pattern_is_as_large_as_its_unrolled_repetitions(pattern: str, size: int) -> None:
    assert pattern_size(pattern) == size


@pytest.mark.parametrize("pattern", ["", "(", ")", "{3}", "[", "]", "\\", "(((", "{", "a{", "[]a]{3}", "(?:)"])
def test_anything_has_a_size(pattern: str) -> None:
    assert 1 <= pattern_size(pattern) <= 20


@pytest.mark.parametrize("pattern", ["(" * 400_000, "a{1000}" + "{1000}" * 50_000, "[" * 400_000, "a{99" * 100_000])
def test_the_size_of_a_hostile_pattern_is_bounded_and_found_in_linear_time(pattern: str) -> None:
    with processor_time(5):
        assert 1 <= pattern_size(pattern) <= MAX_SIZE
