"""The canonical form of cards (RFC 8785)."""

import json
from typing import Any

import pytest

from infrastructure.identity.canonical_cards import canonical_forms

pytestmark = pytest.mark.requirement("X5")


def form(card: dict[str, Any]) -> str:
    return next(canonical_forms(card)).decode()


def test_the_example_of_the_rfc_has_its_form() -> None:
    """RFC 8785, section 3.2.2 and 3.2.3."""
    given = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert form(given) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_names_are_sorted_by_their_utf_16_units() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    assert list(json.loads(form(dict.fromkeys(names, 0)))) == [
        "\r",
        "1",
        "\u0080",
        "\u00f6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5.0, "5"),
        (-1.5, "-1.5"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (9007199254740993, "9007199254740992"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
    ids=str,
)
def test_numbers_are_written_as_ecmascript_does(number: float, written: str) -> None:
    assert form({"n": number}) == f'{{"n":{written}}}'


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "huge"])
def test_what_is_no_number_of_json_has_no_form(wrong: float) -> None:
    with pytest.raises(ValueError, match="no JSON number"):
        form({"n": wrong})


def test_a_card_that_is_too_deep_has_no_form() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="too deep"):
        form({"n": deep})


def test_signatures_are_left_out_and_empty_values_are_in_one_of_two_forms() -> None:
    card: dict[str, Any] = {"a": {"b": "", "c": []}, "d": False, "signatures": [1]}
    assert [found.decode() for found in canonical_forms(card)] == ['{"a":{"b":"","c":[]},"d":false}', '{"d":false}']
