"""Update bodies that have the fields of another body."""

from typing import ClassVar

import pytest
from pydantic import Field

from domain.rate_limit import RateLimit
from interfaces.http.bodies import Body, Name, Patch, decoded_body
from interfaces.http.rates import RateLimitBody
from tests.refusals import refused


class _Thing(Body):
    name: Name = Field(description="Unique.")
    size: int = Field(default=1, gt=0, description="In metres.")
    rate: RateLimitBody | None = None


class _UpdateThing(Patch, of=_Thing):
    nullable: ClassVar[frozenset[str]] = frozenset({"rate"})

    name: str | None = Field(default=None, description="Another.")


def test_an_update_has_all_fields_in_their_order_and_needs_none() -> None:
    assert list(_UpdateThing.model_fields) == ["name", "size", "rate"]
    assert decoded_body(_UpdateThing, {}).changes() == {}


def test_bounds_and_descriptions_stay() -> None:
    described = {name: field.description for name, field in _UpdateThing.model_fields.items()}

    assert described == {"name": "Another.", "size": "In metres.", "rate": None}
    with refused("body_invalid"):
        decoded_body(_UpdateThing, {"size": 0})


def test_changes_are_the_fields_given_as_the_domain_has_them() -> None:
    body = decoded_body(_UpdateThing, {"rate": {"calls": 2, "per_s": 1.5}, "size": 4})

    assert body.changes() == {"size": 4, "rate": RateLimit(calls=2, per_s=1.5)}
    assert decoded_body(_UpdateThing, {"rate": None}).changes() == {"rate": None}


@pytest.mark.parametrize("name", ["name", "size"])
def test_null_is_refused_where_it_means_nothing(name: str) -> None:
    with refused("body_invalid"):
        decoded_body(_UpdateThing, {name: None}).changes()


def test_a_field_that_cannot_be_changed_is_unknown_to_the_update() -> None:
    class UpdateUnnamed(Patch, of=_Thing, without=("name",)):
        pass

    assert list(UpdateUnnamed.model_fields) == ["size", "rate"]
    with refused("body_invalid"):
        decoded_body(UpdateUnnamed, {"name": "other"})
