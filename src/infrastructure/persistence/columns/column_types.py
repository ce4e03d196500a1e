"""SQL types of domain values, the same for both databases."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

from domain.json_value import JsonValue
from infrastructure.runtime.json_text import decode, encode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NANO = Decimal(1_000_000_000)


def micros(moment: datetime) -> int:
    """Exact microseconds since 1970 in UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


class Moment(TypeDecorator[datetime]):
    """A point in time as integer microseconds since 1970: exact, sortable on both databases, and
    cheaper than text."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else moment_of(value)

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:
        """The conversion without an intermediate call: it runs for every value of every row."""
        return _micros_or_none

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:
        return _moment_or_none


class NanoUsd(TypeDecorator[Decimal]):
    """Money as integer billionths of a US dollar: sums are exact, and a single cached token has a
    price."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        """Rounded half to even."""
        return None if value is None else round(value * _NANO)

    def process_result_value(self, value: int | None, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value) / _NANO


class JsonText(TypeDecorator[JsonValue]):
    """A JSON value as text; None is NULL. The databases do not parse these values."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: JsonValue, dialect: Dialect) -> str | None:
        return None if value is None else encode(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> JsonValue:
        return None if value is None else decode(value)

    def bind_processor(self, dialect: Dialect) -> Callable[[JsonValue], str | None]:
        return _encoded_or_none

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], JsonValue]:
        return _decoded_or_none


class PlainText(TypeDecorator[str]):
    """Text in which characters that a database cannot store (NUL in PostgreSQL, lone surrogates in
    both) are U+FFFD. This also applies to conditions: an invalid id from a client finds nothing
    instead of failing the statement."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None]:
        return storable_or_none


def storable(value: str) -> str:
    """The text with U+FFFD instead of NUL and lone surrogates."""
    if value.isascii() and "\0" not in value:
        return value
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace("\0", "\ufffd")


def storable_or_none(value: str | None) -> str | None:
    return None if value is None else storable(value)


def _micros_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def _moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else moment_of(value)


def _encoded_or_none(value: JsonValue) -> str | None:
    return None if value is None else encode(value)


def _decoded_or_none(text: str | None) -> JsonValue:
    return None if text is None else decode(text)
