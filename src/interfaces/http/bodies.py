"""JSON bodies: strict pydantic models, and what is wrong with a body as violations with paths."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, ClassVar, TypeVar

from litestar.plugins.pydantic import PydanticInitPlugin
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from domain.errors import Violation, invalid
from domain.json_value import JsonObject

BodyT = TypeVar("BodyT", bound="Body")

MAX_JSON_BYTES = 10 * 1024 * 1024
"""What a request may bring, where a route does not say otherwise."""
MAX_NAME = 200
"""Characters of a name or an id, of a model's too."""

MAX_FAULTS = 20
"""Faults that one answer lists."""
_NEAR_NAMES = 5  # unknown fields for which the nearest known one is looked for
_DESCRIBED = 500

Name = Annotated[str, Field(max_length=MAX_NAME)]
"""A name or an id."""

Strings = Annotated[tuple[Annotated[str, Field(max_length=8_192)], ...], Field(strict=False, max_length=1_000)]
"""A JSON array of strings."""


class Body(BaseModel):
    """A JSON object without unknown fields; values have the JSON type that is asked for, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)
    examples: ClassVar[tuple[JsonObject, ...]] = ()


class Patch(Body):
    """Changes to a saved thing: absent fields stay. Only fields in `nullable` may be set to null."""

    nullable: ClassVar[frozenset[str]] = frozenset()

    def changes(self, *, without: frozenset[str] = frozenset()) -> dict[str, object]:
        """The fields that were named, with their values. Raises INVALID `body_invalid` for a null that may not be."""
        named: dict[str, object] = self.model_dump(exclude_unset=True)
        wrong = [
            Violation(path=name, message="must not be null")
            for name, value in named.items()
            if value is None and name not in self.nullable
        ]
        if wrong:
            raise invalid("body_invalid", "The request body is not valid.", *wrong)
        return {name: value for name, value in named.items() if name not in without}


class BodyDecoding(PydanticInitPlugin):
    """Decodes bodies by `decoded_body` instead of Litestar's own way, which loses paths and answers 400."""

    @classmethod
    def decoders(
        cls, validate_strict: bool = False
    ) -> list[tuple[Callable[[object], bool], Callable[[type[Body], object], Body]]]:
        """One decoder, for all bodies."""
        return [(_is_body, decoded_body)]


def decoded_body(model: type[BodyT], value: object) -> BodyT:
    """The body. Raises INVALID `body_invalid` with what is wrong, up to MAX_FAULTS; values are never repeated in it."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        faults = _first_faults(model, value, exc)
        shown = [_violation(model, value, fault, place) for place, fault in enumerate(faults[:MAX_FAULTS])]
        total = exc.error_count()
        more = f" It has {total} faults; these are the first {len(shown)}." if total > len(shown) else ""
        raise invalid("body_invalid", f"The request body is not valid.{more}", *shown) from exc


def _first_faults(model: type[BodyT], value: object, found: ValidationError) -> list[ErrorDetails]:
    """At least the first MAX_FAULTS of them. Thousands are expensive to describe: then they are those of the beginnings of all lists
    and objects, in which a field may be missing that is further on."""
    if found.error_count() <= _DESCRIBED:
        return found.errors(include_url=False, include_input=False)
    try:
        model.model_validate(_beginning(value))
    except ValidationError as few:
        faults = few.errors(include_url=False, include_input=False)
        return [fault for fault in faults if fault["type"] != "missing"]
    return []


def _beginning(value: object) -> object:
    match value:
        case list():
            return [_beginning(item) for item in value[:MAX_FAULTS]]
        case dict():
            return {name: _beginning(item) for name, item in islice(value.items(), 2 * MAX_FAULTS)}
        case _:
            return value


def _is_body(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Body)


def _violation(model: type[Body], value: object, fault: ErrorDetails, place: int) -> Violation:
    path = _path(value, fault["loc"], missing=fault["type"] == "missing")
    is_searched = place < _NEAR_NAMES and len(path) <= MAX_NAME
    path = path if len(path) <= MAX_NAME else f"{path[:MAX_NAME]}…"
    match fault["type"]:
        case "missing":
            message = "is required"
        case "extra_forbidden":
            near = get_close_matches(path, list(model.model_fields), n=1) if is_searched else []
            message = "is not a known field" + (f"; did you mean {near[0]!r}?" if near else "")
        case "model_type":
            message = "must be a JSON object"
        case _:
            message = fault["msg"]
    return Violation(path=path, message=message)


def _path(value: object, loc: Sequence[int | str], *, missing: bool) -> str:
    """The path in the body, without the labels of union members that pydantic puts in between.

    Unions of objects are told apart by their field `type`, whose value is the label.
    """
    steps: list[str] = []
    labelled = False
    for index, step in enumerate(loc):
        match value, step:
            case dict(), str() if step == value.get("type") and not labelled:
                labelled = True
                continue
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case dict(), str() if missing and index == len(loc) - 1:
                pass
            case _:
                continue
        labelled = False
        steps.append(str(step))
    return ".".join(steps)
