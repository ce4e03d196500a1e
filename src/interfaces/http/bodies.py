"""JSON bodies: strict pydantic models, and their faults as violations with paths."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, ClassVar, Optional, TypeGuard, TypeVar, get_args

from litestar.plugins.pydantic import PydanticInitPlugin
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.nearest import nearest

BodyT = TypeVar("BodyT", bound="Body")

MAX_JSON_BYTES = 10 * 1024 * 1024
"""Size limit of a request body, unless a route sets another."""
MAX_NAME = 200
"""Most characters of a name or an id."""

MAX_FAULTS = 20
"""Most faults in one response."""
_NEAR_NAMES = 5  # most unknown fields and values that get a suggestion
_OPTION = re.compile(r"'([^']*)'")
_DESCRIBED = 500
_PLAIN = {
    "dict_type": "must be a JSON object",
    "list_type": "must be a JSON array",
    "tuple_type": "must be a JSON array",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "union_tag_invalid": "its {discriminator} must be one of {expected_tags}",
    "union_tag_not_found": "needs a {discriminator}",
}
"""Messages in place of those of pydantic, by its type of a fault."""

Name = Annotated[str, Field(max_length=MAX_NAME)]
"""A name or an id."""

Strings = Annotated[tuple[Annotated[str, Field(max_length=8_192)], ...], Field(strict=False, max_length=1_000)]
"""A JSON array of strings."""


class Body(BaseModel):
    """A JSON object without unknown fields. Values must have the declared JSON type; nothing is
    converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)
    examples: ClassVar[tuple[JsonObject, ...]] = ()
    shown_as: ClassVar[type | None] = None
    """The view whose fields describe those of the body that have no description."""

    def to_domain(self) -> object:
        """The domain value of a body that is a field of another body."""
        return self

    def values(self, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
        """All fields by name, including absent ones; nested bodies as domain values."""
        return {name: _domain_value(getattr(self, name)) for name in type(self).model_fields if name not in without}

    def stated(self, *, without: frozenset[str] = frozenset()) -> dict[str, object]:
        """As `values`, without absent fields."""
        given = self.model_fields_set
        return {name: value for name, value in self.values(without=without).items() if name in given}


class Patch(Body):
    """Changes to a stored object: absent fields stay. Only fields in `nullable` may be set to
    null. `class UpdateThing(Patch, of=Thing)` has the fields of `Thing` except
    those in `without`, all optional, and their descriptions. It declares those that differ."""

    nullable: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls,
        *,
        of: type[Body] | None = None,
        without: Collection[str] = (),
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if of is None:
            return
        cls.shown_as = of.shown_as
        own = cls.__annotations__
        derived: dict[str, object] = {}
        for name, field in of.model_fields.items():
            if name in without:
                continue
            if name in own:
                derived[name] = own.pop(name)
                continue
            annotation = of.__annotations__[name]
            derived[name] = Optional[annotation]  # noqa: UP045
            optional: Any = Field(default=None, description=field.description, repr=field.repr)
            stated = FieldInfo.from_annotation(annotation).metadata
            optional.metadata = [bound for bound in field.metadata if bound not in stated]
            setattr(cls, name, optional)
        cls.__annotations__ = {**derived, **own}

    def changes(self, *, without: frozenset[str] = frozenset()) -> dict[str, object]:
        """The fields present. Raises INVALID `body_invalid` for a null that is not allowed."""
        wrong = [
            Violation(path=name, message="must not be null")
            for name in type(self).model_fields
            if name in self.model_fields_set and name not in self.nullable and getattr(self, name) is None
        ]
        if wrong:
            raise invalid("body_invalid", "The request body is not valid.", *wrong)
        return self.stated(without=without)


def _domain_value(value: object) -> object:
    match value:
        case Body():
            return value.to_domain()
        case dict():
            return {name: item.to_domain() if isinstance(item, Body) else item for name, item in value.items()}
        case tuple():
            return tuple([item.to_domain() if isinstance(item, Body) else item for item in value])
        case _:
            return value


class BodyDecoding(PydanticInitPlugin):
    """Decodes bodies by `decoded_body`. Litestar's own decoding loses paths and answers 400."""

    @classmethod
    def decoders(
        cls, validate_strict: bool = False
    ) -> list[tuple[Callable[[object], bool], Callable[[type[Body], object], Body]]]:
        return [(_is_body, decoded_body)]


def decoded_body(model: type[BodyT], value: object) -> BodyT:
    """The body. Raises INVALID `body_invalid` with at most MAX_FAULTS faults, without repeating
    values."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        faults = _first_faults(model, value, exc)
        shown = [_violation(model, value, fault, place) for place, fault in enumerate(faults[:MAX_FAULTS])]
        total = exc.error_count()
        more = f" It has {total} faults; these are the first {len(shown)}." if total > len(shown) else ""
        raise invalid("body_invalid", f"The request body is not valid.{more}", *shown) from exc


def _first_faults(model: type[BodyT], value: object, found: ValidationError) -> list[ErrorDetails]:
    """At least the first MAX_FAULTS faults. Describing thousands is expensive, so larger values
    are validated again with shortened lists and objects, where a later field may be reported
    missing."""
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


def _is_body(annotation: object) -> TypeGuard[type[Body]]:
    return isinstance(annotation, type) and issubclass(annotation, Body)


def _violation(model: type[Body], value: object, fault: ErrorDetails, place: int) -> Violation:
    path = _path(value, fault["loc"], missing=fault["type"] == "missing")
    is_searched = place < _NEAR_NAMES and len(path) <= MAX_NAME
    path = path if len(path) <= MAX_NAME else f"{path[:MAX_NAME]}…"
    match fault["type"]:
        case "missing":
            message = "is required"
        case "extra_forbidden":
            near = nearest(str(fault["loc"][-1]), _fields_at(model, fault["loc"][:-1])) if is_searched else None
            message = "is not a known field" + (f"; did you mean {near!r}?" if near is not None else "")
        case "model_type":
            message = "must be a JSON object"
        case "enum" | "literal_error":
            message = _of_options(
                str(fault.get("ctx", {}).get("expected", "")), value if is_searched else None, fault["loc"]
            )
        case kind:
            message = _plain(kind, fault.get("ctx", {})) or fault["msg"]
    return Violation(path=path, message=message)


def _fields_at(model: type[Body], loc: Sequence[int | str]) -> Iterable[str]:
    """The fields of the object at `loc`; none where it has no model, or is one of several."""
    for step in loc:
        field = model.model_fields.get(step) if isinstance(step, str) else None
        annotation = None if field is None else field.annotation
        bodies = [of for of in (annotation, *get_args(annotation)) if _is_body(of)]
        if len(bodies) != 1:
            return ()
        model = bodies[0]
    return model.model_fields


def _plain(kind: str, bounds: Mapping[str, object]) -> str | None:
    numbers = {name: int(one) if isinstance(one, float) and one.is_integer() else one for name, one in bounds.items()}
    return _PLAIN[kind].format(**numbers) if kind in _PLAIN else None


def _of_options(expected: str, body: object, loc: Sequence[int | str]) -> str:
    """`expected` lists the options in quotes. The text at `loc` of the body is compared, not
    shown."""
    given = body
    for step in loc:
        given = given.get(step) if isinstance(given, dict) else None
    near = nearest(given, _OPTION.findall(expected)) if isinstance(given, str) else None
    return f"must be {expected}" + (f"; did you mean {near!r}?" if near is not None else "")


def _path(value: object, loc: Sequence[int | str], *, missing: bool) -> str:
    """The path in the body, without the union labels that pydantic inserts. Unions of objects
    are discriminated by `type`, whose value is the label."""
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
