"""Frozen dataclasses as rows and as JSON columns, by their fields: a new field needs no code
here."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, NewType, TypeVar, Union, get_args, get_origin

from domain.policy.rule_json import policies_from_json, policies_to_json
from domain.policy.rules import ToolPolicies
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.secrets.secret import SecretRef, SecretValue
from infrastructure.persistence.columns.column_types import micros, moment_of
from infrastructure.persistence.columns.paging import AnyRow

T = TypeVar("T")
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""How a value is written, and how it is read."""
Codecs = Mapping[Any, Codec | None]
"""By type; None for a type that is stored unchanged."""


class Fields(Generic[T]):
    """Fields of a dataclass by the names of columns or JSON keys.

    - Only fields in `only` are stored here; `without` are stored elsewhere and passed by the
      reader.
    - `renamed` maps fields to other stored names.
    - `codecs` has the types with a special stored form.
    - A missing JSON key has its field's default; an unknown key is ignored.
    """

    def __init__(
        self,
        type_: type[T],
        *,
        only: Collection[str] | None = None,
        without: Collection[str] = (),
        renamed: Mapping[str, str] | None = None,
        codecs: Codecs,
    ) -> None:
        self._type = type_
        stored = [
            field
            for field in fields(type_)  # type: ignore[arg-type]
            if field.name not in without and (only is None or field.name in only)
        ]
        self._stored_as = {field.name: (renamed or {}).get(field.name, field.name) for field in stored}
        self._names = tuple(self._stored_as.values())
        self._fields = _all_of(tuple(self._stored_as))
        self._columns = _all_of(self._names)
        found = {field.name: codec_of(field.type, codecs) for field in stored}
        converted = [(name, codec) for name, codec in found.items() if codec is not None]
        self._writers = tuple((self._stored_as[name], write) for name, (write, _) in converted)
        self._readers = tuple((name, read) for name, (_, read) in converted)

    def write(self, value: T) -> dict[str, Any]:
        """Every field under its stored name."""
        stored = dict(zip(self._names, self._fields(value), strict=True))
        for name, write in self._writers:
            if (field := stored[name]) is not None:
                stored[name] = write(field)
        return stored

    def write_stated(self, value: T) -> dict[str, Any]:
        """Fields that are not None."""
        return {name: field for name, field in self.write(value).items() if field is not None}

    def values(self, stored: Any) -> dict[str, Any]:
        """The fields that the JSON has."""
        return self._read({name: stored[key] for name, key in self._stored_as.items() if key in stored})

    def read(self, stored: Any, **elsewhere: object) -> T:
        return self._type(**self.values(stored), **elsewhere)

    def of_row(self, row: AnyRow, **elsewhere: object) -> T:
        return self._type(**self._read(dict(zip(self._stored_as, self._columns(row), strict=True))), **elsewhere)

    def _read(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, read in self._readers:
            if (stored := values.get(name)) is not None:
                values[name] = read(stored)
        return values


def row_fields(
    type_: type[T],
    *,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
    codecs: Codecs | None = None,
) -> Fields[T]:
    """Fields that are columns; column types convert moments and money."""
    return Fields(type_, only=only, without=without, renamed=renamed, codecs={**_IN_ROWS, **(codecs or {})})


def json_fields(
    type_: type[T],
    *,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    codecs: Codecs | None = None,
) -> Fields[T]:
    """Fields inside one JSON column: moments are microseconds since 1970, money is text."""
    return Fields(type_, only=only, without=without, codecs={**_IN_JSON, **(codecs or {})})


def json_codec(type_: object) -> Codec:
    """The codec of this type in JSON."""
    return codec_of(type_, _IN_JSON) or (_same, _same)


def tagged(**types: type) -> Codec:
    """One of several dataclasses; its `type` is its name among `types`."""
    names = {type_: name for name, type_ in types.items()}
    parts: dict[str, Fields[Any]] = {name: json_fields(type_) for name, type_ in types.items()}

    def write(value: object) -> dict[str, Any]:
        name = names[type(value)]
        return {"type": name, **parts[name].write(value)}

    return write, lambda stored: parts[stored["type"]].read(stored)


def codec_of(type_: object, codecs: Codecs) -> Codec | None:
    """None for values that are stored unchanged: text, numbers, JSON."""
    if type_ in codecs:
        return codecs[type_]
    if isinstance(type_, NewType):
        return codec_of(type_.__supertype__, codecs)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType) and NoneType in arguments:
        (*rest,) = (argument for argument in arguments if argument is not NoneType)
        return codec_of(Union[tuple(rest)], codecs)  # noqa: UP007
    if isinstance(type_, type) and issubclass(type_, Enum):
        return attrgetter("_value_"), type_
    if isinstance(type_, type) and is_dataclass(type_):
        nested: Fields[Any] = Fields(type_, codecs=codecs)
        return nested.write, nested.read
    if origin is tuple and arguments[1:] == (...,):
        return _tuple_codec(codec_of(arguments[0], codecs))
    if origin is Mapping:
        return _mapping_codec(codec_of(arguments[1], codecs))
    if type_ in _PLAIN or isinstance(type_, str) or origin is dict:
        return None
    raise TypeError(f"{type_} has no codec")


def _tuple_codec(item: Codec | None) -> Codec:
    if item is None:
        return list, tuple
    write, read = item
    return (
        lambda values: [write(value) for value in values],
        lambda stored: tuple([read(value) for value in stored]),
    )


def _mapping_codec(item: Codec | None) -> Codec:
    if item is None:
        return dict, dict
    write, read = item
    return (
        lambda values: {name: write(value) for name, value in values.items()},
        lambda stored: {name: read(value) for name, value in stored.items()},
    )


def _all_of(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    one_or_many = attrgetter(*names)
    return one_or_many if len(names) > 1 else lambda value: (one_or_many(value),)


def _same(value: Any) -> Any:
    return value


def _secret_written(value: SecretValue) -> str | dict[str, str]:
    return {"secret": value.name} if isinstance(value, SecretRef) else value


def _secret_read(stored: str | dict[str, str]) -> SecretValue:
    return SecretRef(stored["secret"]) if isinstance(stored, dict) else stored


def _read_limits(stored: Any) -> LimitSettings:
    return _limits.read(stored) if stored else _NO_LIMITS


def _read_settings(stored: Any) -> ModelSettings:
    return _settings.read(stored) if stored else NO_SETTINGS


_PLAIN = (str, int, float, bool, bytes)
_settings = Fields(ModelSettings, codecs={})
_limits = Fields(LimitSettings, codecs={Decimal: (str, Decimal)})
_NO_LIMITS = LimitSettings()
_STATED: dict[object, Codec | None] = {
    LimitSettings: (_limits.write_stated, _read_limits),
    ModelSettings: (_settings.write_stated, _read_settings),
    ToolPolicies: (policies_to_json, policies_from_json),
    SecretValue: (_secret_written, _secret_read),
}
_IN_JSON: dict[object, Codec | None] = {**_STATED, datetime: (micros, moment_of), Decimal: (str, Decimal)}
_IN_ROWS: dict[object, Codec | None] = {**_STATED, datetime: None, Decimal: None}
