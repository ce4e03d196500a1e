"""Changes of stored values."""

from decimal import Decimal

import pytest

from application.system.changes import changed_fields, with_changes
from domain.runs.limits import LimitSettings
from tests.refusals import refused

LIMITS = LimitSettings(max_turns=3, timeout_s=60.0)


def test_named_fields_are_replaced_and_others_stay() -> None:
    changed = with_changes(LIMITS, {"timeout_s": None, "max_cost_usd": Decimal(1)})

    assert changed == LimitSettings(max_turns=3, max_cost_usd=Decimal(1))
    assert changed_fields(LIMITS, changed) == ["max_cost_usd", "timeout_s"]


def test_the_value_as_a_whole_is_checked() -> None:
    with refused("limits_invalid"):
        with_changes(LIMITS, {"max_turns": 0})


def test_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(TypeError):
        with_changes(LIMITS, {"max_turn": 1})
