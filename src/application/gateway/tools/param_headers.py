"""Arguments repeated in HTTP headers for routing by intermediaries: `x-mcp-header` in a tool's
schema, `Mcp-Param-…` on the wire (MCP 2026-07-28, basic/transports). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from domain.json_value import JsonObject, JsonValue

_PREFIX = "mcp-param-"
_ANNOTATION = "x-mcp-header"
_DECIMAL = re.compile(r"(-?[0-9]{1,400})(\.0+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderParam:
    """A parameter by its path through the schema's properties, and its header in lower case."""

    path: tuple[str, ...]
    header: str
    is_integer: bool


def header_params(schema: JsonObject, path: tuple[str, ...] = ()) -> tuple[HeaderParam, ...]:
    """The parameters that a tool requires in headers. Tools with invalid annotations are never
    listed."""
    properties = schema.get("properties")
    found: list[HeaderParam] = []
    for name, prop in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(prop, dict):
            continue
        token = prop.get(_ANNOTATION)
        if isinstance(token, str):
            header = f"{_PREFIX}{token.lower()}"
            found.append(HeaderParam(path=(*path, name), header=header, is_integer=prop.get("type") == "integer"))
        found += header_params(prop, (*path, name))
    return tuple(found)


def header_mismatch(
    params: tuple[HeaderParam, ...], arguments: JsonObject, headers: Mapping[str, str | None]
) -> str | None:
    """The first error in the headers of a call. A header must be present exactly if its argument is
    not null, and repeat it. `headers` are decoded, by lower-case name; None for one that cannot
    be decoded."""
    for param in params:
        value, name = _at(arguments, param.path), ".".join(param.path)
        stated = _stated(value)
        if param.header not in headers:
            if stated is not None:
                return f"The header {param.header} is missing: the argument {name} is set."
            continue
        said = headers[param.header]
        if said is None:
            return f"The header {param.header} cannot be decoded."
        if stated is None or not (said == stated or (param.is_integer and _is_same_number(value, said))):
            return f"The header {param.header} differs from the argument {name} in the body."
    return None


def _at(arguments: JsonObject, path: tuple[str, ...]) -> JsonValue:
    value: JsonValue = arguments
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _stated(value: JsonValue) -> str | None:
    """The header form of the value. None for values without one, like objects."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        return None


def _is_same_number(value: JsonValue, said: str) -> bool:
    """`42` equals `42.0`; fractions never match."""
    whole = _DECIMAL.fullmatch(said)
    if whole is None or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == int(whole[1])
