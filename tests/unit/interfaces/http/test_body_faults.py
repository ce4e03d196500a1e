"""Faults of a body in words that name what it must be."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from domain.errors import ServiceError
from interfaces.http.bodies import Body, decoded_body


class _Text(Body):
    type: Literal["text"]


class _Image(Body):
    type: Literal["image"]


class _Everything(Body):
    text: Annotated[str, Field(max_length=3)] = ""
    url: Annotated[str, Field(min_length=2, pattern="^https?://")] = "http://"
    few: tuple[str, ...] = Field(default=("a",), min_length=1, max_length=2, strict=False)
    part: Annotated[_Text | _Image, Field(discriminator="type")] | None = None
    whole: Annotated[int, Field(ge=1, lt=10)] = 1
    number: Annotated[float, Field(gt=0, le=1)] = 1.0
    flag: bool = True
    entries: tuple[str, ...] = Field(default=(), strict=False)
    object: dict[str, str] = Field(default_factory=dict)


@pytest.mark.requirement("E6")
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("text", 1, "must be a string"),
        ("text", "long", "must have at most 3 characters"),
        ("url", "h", "must have at least 2 characters"),
        ("url", "ftp://", "must match ^https?://"),
        ("few", [], "must have at least 1 entries"),
        ("few", ["a", "b", "c"], "must have at most 2 entries"),
        ("part", {"type": "video"}, "its 'type' must be one of 'text', 'image'"),
        ("part", {}, "needs a 'type'"),
        ("whole", "1", "must be a whole number"),
        ("whole", 1.5, "must be a whole number"),
        ("whole", 0, "must be at least 1"),
        ("whole", 10, "must be less than 10"),
        ("number", "1", "must be a number"),
        ("number", 0, "must be greater than 0"),
        ("number", 2, "must be at most 1"),
        ("flag", "yes", "must be true or false"),
        ("entries", {}, "must be a JSON array"),
        ("object", [], "must be a JSON object"),
    ],
)
def test_a_fault_says_what_the_field_must_be(field: str, value: Any, said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        decoded_body(_Everything, {field: value})
    [violation] = refused.value.violations
    assert (violation.path, violation.message) == (field, said)
