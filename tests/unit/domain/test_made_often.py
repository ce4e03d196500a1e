"""Values that are made often: what their `__init__` of their own has in common with the one of a frozen dataclass."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from domain.made_often import made_often


@made_often
@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    weight_g: int
    to: str = "nobody"
    labels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.weight_g < 0:
            raise ValueError("weighs less than nothing")


def test_a_value_has_what_it_was_given_and_defaults_for_the_rest() -> None:
    assert (Parcel(weight_g=5).weight_g, Parcel(weight_g=5).to, Parcel(weight_g=5).labels) == (5, "nobody", [])
    given = Parcel(weight_g=1, to="us", labels=["fragile"])
    assert given == replace(Parcel(weight_g=1), to="us", labels=["fragile"])
    assert repr(given).endswith("Parcel(weight_g=1, to='us', labels=['fragile'])")


def test_a_default_that_is_made_is_made_for_each() -> None:
    assert Parcel(weight_g=1).labels is not Parcel(weight_g=1).labels


def test_a_value_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Parcel(weight_g=1).to = "them"  # type: ignore[misc]


def test_a_value_is_looked_at_as_it_is_made() -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        Parcel(weight_g=-1)


@pytest.mark.parametrize("given", [{}, {"weight_g": 1, "colour": "red"}])
def test_what_is_missing_or_unknown_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"Parcel\.__init__"):
        Parcel(**given)  # type: ignore[arg-type]


def test_a_class_without_slots_of_its_own_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Box:
        size: int

    with pytest.raises(TypeError, match=r"Box\.size"):
        made_often(Box)


def test_a_class_whose_fields_are_taken_by_place_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Box:
        size: int

    with pytest.raises(TypeError, match=r"Box\.size"):
        made_often(Box)
