"""JSON Schema validation by jsonschema-rs: compiled once, no network access, linear-time patterns,
bounded work.

Most validation runs on the event loop, so schemas and values that would block it are rejected
first.
"""

import hashlib
import json
from dataclasses import dataclass
from itertools import islice
from threading import Lock

import jsonschema_rs
import msgspec

from application.system.lru import LruCache
from domain.errors import invalid
from domain.json_value import JsonObject, JsonValue
from infrastructure.schemas.schema_cost import MAX_VALUE_DEPTH, SchemaCost, UnusableSchema, cost_of

MAX_VIOLATIONS = 10

_MAX_SCHEMA_BYTES = 1024 * 1024
_MAX_MESSAGE = 300
_MAX_SHOWN_VALUE = 64
_MAX_BRANCHES = 4
_REGEX_BYTES = 1024 * 1024

# In checks of subschemas. A check takes about 10 ns, an explanation 10 µs and more.
_MAX_CHECKS = 10_000_000
_MAX_EXPLAINED = 15_000
_MAX_MATCHED = 50_000_000
"""Characters of a value, times the states of the schema's patterns. A step takes up to 7 ns."""
_MAX_ERROR_BYTES = 10_000_000
"""Bytes of a schema, times the values that may not fit: an error has a copy of its keyword."""
_PLAIN_BITS = 64

_VALUE = "\x00"
"""A placeholder for the invalid value in the validator's messages. A shortened value replaces
it."""

_TYPES = "array, boolean, integer, null, number, object and string"
_TOO_DEEP = "is nested too deeply to be checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """A compiled schema, or the reason why it is unusable."""

    validator: jsonschema_rs.Validator | None = None
    cost: SchemaCost | None = None
    length: int = 0
    problem: str | None = None


class JsonSchemaValidator:
    """JSON Schema 2020-12, or the draft that `$schema` names. Caches the `cache_size` most recently
    used schemas. For several threads."""

    def __init__(self, *, cache_size: int = 1_024) -> None:
        self._compiled: LruCache[bytes, _Compiled] = LruCache(cache_size)
        self._lock = Lock()
        self._encoder = msgspec.json.Encoder()

    def violations(self, schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        """The violations of `value`: at most ten sentences of at most 300 characters, each with a
        JSON pointer (`/limit: "x" is not of type "integer"`; none for the root). Long values are
        not quoted.

        Raises ServiceError `schema_invalid` if the schema itself is unusable.
        """
        compiled = self._compile(schema)
        if compiled.validator is None or compiled.cost is None:
            raise invalid("schema_invalid", f"The JSON Schema cannot be used: {compiled.problem}.")
        extent = _extent(value)
        if extent.depth > MAX_VALUE_DEPTH:
            return (_TOO_DEEP,)
        checks = compiled.cost.at(extent.depth) * extent.size
        if checks > _MAX_CHECKS or compiled.cost.states * extent.characters > _MAX_MATCHED:
            return ("is too large or too deeply nested to be checked against this schema",)
        try:
            if compiled.validator.is_valid(value):
                return ()
            if checks > _MAX_EXPLAINED or compiled.length * extent.size > _MAX_ERROR_BYTES:
                return ("does not fit the schema; it is too large or too deeply nested to say where",)
            sentences = (_sentence(error) for error in compiled.validator.iter_errors(value))
            # Two branches of a schema may report the same violation.
            return tuple(dict.fromkeys(islice(sentences, MAX_VIOLATIONS)))
        except UnicodeEncodeError:
            return ("holds text that is not valid Unicode",)

    def problem_with(self, schema: JsonObject) -> str | None:
        """Why a schema cannot describe a tool's arguments or results, as a clause without a full
        stop, or None."""
        if schema.get("type") != "object":
            return 'it is not an object schema ("type": "object")'
        return self._compile(schema).problem

    def _compile(self, schema: JsonObject) -> _Compiled:
        try:
            encoded = self._encoder.encode(schema)
        except (UnicodeEncodeError, OverflowError, RecursionError, TypeError):
            return _Compiled(problem="it is not JSON, or nested too deeply")
        key = hashlib.blake2b(encoded, digest_size=16).digest()
        with self._lock:
            compiled = self._compiled.get(key)
        if compiled is None:
            compiled = _compiled(encoded)
            with self._lock:
                self._compiled.put(key, compiled)
        return compiled


def _compiled(encoded: bytes) -> _Compiled:
    if len(encoded) > _MAX_SCHEMA_BYTES:
        return _Compiled(problem=f"it is larger than {_MAX_SCHEMA_BYTES} bytes")
    try:
        # A separate copy: the analysis distinguishes subschemas by identity.
        schema = msgspec.json.decode(encoded, type=dict[str, object])
        cost = cost_of(schema)  # type: ignore[arg-type]  # decoded JSON
        if cost.at(1) > _MAX_CHECKS or (cost.settled and cost.most > _MAX_CHECKS):
            return _Compiled(problem="its references multiply into too many checks")
        validator = jsonschema_rs.validator_for(
            schema,
            mask=_VALUE,
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES),
        )
    except UnusableSchema as unusable:
        return _Compiled(problem=unusable.reason)
    except jsonschema_rs.ValidationError as error:
        return _Compiled(problem=_schema_problem(error))
    except (ValueError, RecursionError):
        return _Compiled(problem=_TOO_DEEP)
    return _Compiled(validator=validator, cost=cost, length=len(encoded))


def _schema_problem(error: jsonschema_rs.ValidationError) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format) and error.kind.format == "regex":
        fault = (
            f"{_shown(error.instance)} is not a regular expression that can be used"
            " (no look-around, no back-references, limited size)"
        )
    elif isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
        fault = "its $schema is not a known draft, or a reference leads out of it"
    elif isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf) and error.instance_path[-1:] == ["type"]:
        fault = f"{_shown(error.instance)} is not one of the types {_TYPES}, nor a list of them"
    else:
        fault = error.message.replace(_VALUE, _shown(error.instance))
    return _capped(f"{_pointer(error.instance_path)}{fault}")


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    message = error.message.replace(_VALUE, _shown(error.instance))
    return _capped(f"{_pointer(error.instance_path)}{message}{_alternatives(error.kind)}")


def _alternatives(kind: jsonschema_rs.ValidationErrorKind) -> str:
    """Why each branch of anyOf or oneOf failed; "no branch matches" alone does not help."""
    if not isinstance(kind, jsonschema_rs.ValidationErrorKind.AnyOf | jsonschema_rs.ValidationErrorKind.OneOfNotValid):
        return ""
    reasons = [_sentence(branch[0]) for branch in kind.context[:_MAX_BRANCHES] if branch]
    return f" ({'; '.join(reasons)})" if reasons else ""


def _pointer(path: list[str | int]) -> str:
    if not path:
        return ""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(f"/{step}" for step in steps) + ": "


def _shown(value: object) -> str:
    """A short value as it is; the beginning or the kind of a long one."""
    match value:
        case str():
            cut = value if len(value) <= _MAX_SHOWN_VALUE else f"{value[: _MAX_SHOWN_VALUE // 2]}…"
            return json.dumps(cut, ensure_ascii=False)
        case None | bool():
            return json.dumps(value)
        case dict():
            return "the object"
        case list():
            return "the array"
        case _:
            return _cut(str(value), _MAX_SHOWN_VALUE)


def _capped(sentence: str) -> str:
    return _cut(sentence, _MAX_MESSAGE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@dataclass(frozen=True, slots=True)
class _Extent:
    """The nesting depth of a value (0 for a scalar), its number of values, and the characters of
    its texts and names. An integer of more than 64 bits is as many values as its arithmetic
    takes."""

    depth: int
    size: int
    characters: int


def _extent(value: JsonValue) -> _Extent:
    """The extent of a value; of one that is too deep, as far as its depth shows that."""
    depth, size, characters = -1, 0, 0
    level: list[JsonValue] = [value]
    while level and depth <= MAX_VALUE_DEPTH:
        depth += 1
        size += len(level)
        below: list[JsonValue] = []
        for one in level:
            if isinstance(one, str):
                characters += len(one)
            elif isinstance(one, list):
                below += one
            elif isinstance(one, dict):
                characters += sum(map(len, one))
                below += one.values()
            elif isinstance(one, int) and one.bit_length() > _PLAIN_BITS:
                size += 4 * (one.bit_length() // _PLAIN_BITS) ** 2
        level = below
    return _Extent(depth, size, characters)
