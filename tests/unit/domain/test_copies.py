"""Copies of values."""

from dataclasses import replace

import pytest

from domain.copies import with_changes
from domain.runs.usage import ModelUsage, Usage


def test_a_copy_with_changes_equals_what_replace_makes() -> None:
    usage = Usage(input_tokens=3, output_tokens=5, turns=2)
    assert with_changes(usage, turns=3) == replace(usage, turns=3)
    assert usage.turns == 2


def test_a_value_with_one_field_is_copied_too() -> None:
    usage = ModelUsage(input_tokens=1, output_tokens=2)
    assert with_changes(usage) == usage


def test_a_change_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError):
        with_changes(Usage(), rounds=3)
