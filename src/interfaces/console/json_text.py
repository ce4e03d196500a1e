"""JSON entered in fields, parsed as strictly as the HTTP API parses bodies."""

import json
from math import isfinite

from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from interfaces.json_bounds import MAX_VALUES, has_too_many_values


class JsonTextError(Exception):
    """The text is invalid. The message is a sentence without its subject: `is not JSON: line 1,
    column 2: …`."""


def json_of(text: str) -> JsonValue:
    r"""The JSON value. Raises JsonTextError, also for infinite numbers (`NaN`, `1e999`) and lone
    surrogates (`"\ud800"`)."""
    if has_too_many_values(text.encode(errors="replace")):
        raise JsonTextError(f"has more than {MAX_VALUES} values")
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise JsonTextError(f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise JsonTextError("is nested too deeply") from None
    except ValueError:
        raise JsonTextError("is not JSON") from None
    return value


def arguments_of(text: str, *, field: str = "arguments") -> JsonObject:
    """Arguments of a tool. Raises INVALID `arguments_invalid` at the field."""
    fault = Violation(path=field, message="must be a JSON object")
    try:
        value = json_of(text)
    except JsonTextError:
        raise invalid("arguments_invalid", "The arguments are not JSON.", fault) from None
    if not isinstance(value, dict):
        raise invalid("arguments_invalid", "The arguments are not a JSON object.", fault)
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _refuse(constant: str) -> float:
    raise ValueError(constant)
