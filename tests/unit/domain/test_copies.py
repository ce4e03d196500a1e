"""Copies of values."""

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from domain.copies import with_changes


@dataclass(frozen=True, kw_only=True)
class Counted:
    turns: int = 0
    names: tuple[str, ...] = ()


def test_a_copy_with_changes_equals_what_replace_makes() -> None:
    before = Counted(turns=2, names=("a",))
    after = with_changes(before, turns=3)
    assert after == replace(before, turns=3) == Counted(turns=3, names=("a",))
    assert before.turns == 2


def test_a_copy_without_changes_is_another_equal_value() -> None:
    before = Counted(turns=2)
    assert with_changes(before) == before
    assert with_changes(before) is not before


def test_a_copy_can_be_changed_as_little_as_its_original() -> None:
    with pytest.raises(FrozenInstanceError):
        with_changes(Counted(), turns=1).turns = 2  # type: ignore[misc]  # what this test is about


def test_a_change_of_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="Counted has no field rounds"):
        with_changes(Counted(), rounds=3)
