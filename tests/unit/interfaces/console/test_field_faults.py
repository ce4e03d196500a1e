"""What a form is told about a refusal."""

from domain.errors import Violation, invalid
from interfaces.console.field_faults import FieldFaults


def test_a_refusal_is_told_at_the_field_that_it_names_and_in_words_if_it_names_none() -> None:
    named = invalid("x_invalid", "Not valid.", Violation(path="name", message="is required"))
    told = FieldFaults.of_refusal(named, lambda path: path)
    assert (told.by_field, told.others) == ({"name": ["is required"]}, [])
    unnamed = FieldFaults.of_refusal(invalid("x_invalid", "Not valid."), lambda path: path)
    assert (unnamed.by_field, unnamed.others) == ({}, ["Not valid."])
