"""The cost bound of a JSON Schema: with `$ref` a small schema can require exponentially many
checks, which would block the process for minutes.

Above: the validator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from domain.json_value import JsonObject, JsonValue
from infrastructure.schemas.pattern_size import pattern_size

_SAME_PLACE_ONE = ("not", "if", "then", "else")
_SAME_PLACE_LIST = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAP = ("dependentSchemas", "dependencies")
_BELOW_ONE = (
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
)
_BELOW_LIST = ("prefixItems", "items")
_BELOW_MAP = ("properties", "patternProperties")
_DEFINITIONS = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")

_MAX_NESTING = 64
_MAX_SUBSCHEMAS = 5_000
_MAX_VALUES = 30_000
"""Of a schema as JSON, options and examples too; compiling one takes up to 2 µs."""
_MAX_CHAIN = 128
_MAX_STEPS = 100_000
_MAX_PATTERNS = 100_000
"""In states; compiling one takes about half a microsecond."""
_MAX_BITS = 256
_NUMBERS = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "const")

# In checks of subschemas.
_COMPARED = 40  # one value of an enum's or a const's objects and arrays
_NAME = 10  # one name that must be there
_PATTERN_OF_NAMES = 10
_EXACT_DIVISION = 2_000  # multipleOf with a fraction
_DIVISION = 30

MAX_VALUE_DEPTH = 128
"""Deeper values are rejected for every schema."""

_ENOUGH = 10**12
"""Costs are capped here: a cost of this size is never allowed, and the numbers stay small."""


class UnusableSchema(Exception):
    """The schema is unusable; `reason` is a clause without a full stop, safe to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCost:
    """An upper bound of the subschemas checked for one path through a value, by the value's depth
    (0 for a scalar).

    - `by_depth` holds the computed bounds; `settled` means that deeper values cost no more.
    - `states` is the size of all regular expressions together (`pattern_size`).
    """

    by_depth: tuple[int, ...]
    settled: bool
    states: int

    def at(self, depth: int) -> int:
        if depth < len(self.by_depth):
            return self.by_depth[depth]
        return self.by_depth[-1] if self.settled else _ENOUGH

    @property
    def most(self) -> int:
        return self.by_depth[-1] if self.settled else _ENOUGH


def cost_of(schema: JsonObject) -> SchemaCost:
    """The cost of a schema without external references.

    Raises UnusableSchema for references that lead elsewhere, nowhere or in a circle, for too deep
    nesting, for too many values, and for numbers and patterns that are too large.
    """
    if _values_in(schema) > _MAX_VALUES:
        raise UnusableSchema(f"it has more than {_MAX_VALUES} values")
    walk = _Walk(schema)
    if walk.states > _MAX_PATTERNS:
        raise UnusableSchema("its regular expressions are too large together")
    order = walk.order()
    below: dict[int, int] = {}
    by_depth: list[int] = []
    while True:
        here: dict[int, int] = {}
        for node in order:
            same_place = sum(here[other] for other in node.same_place)
            lower = sum(below[other] for other in node.below) if below else 0
            here[node.key] = min(node.checks + node.factor * same_place + lower, _ENOUGH)
        by_depth.append(here[id(schema)])
        if here == below:
            return SchemaCost(by_depth=tuple(by_depth), settled=True, states=walk.states)
        if by_depth[-1] >= _ENOUGH or len(by_depth) > min(MAX_VALUE_DEPTH, _MAX_STEPS // len(order)):
            return SchemaCost(by_depth=tuple(by_depth), settled=False, states=walk.states)
        below = here


@dataclass(slots=True)
class _Node:
    """A subschema: the checks of its keywords, the others that apply to the same place of the
    value, and those that apply below it."""

    key: int
    checks: int = 1
    factor: int = 1
    same_place: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


class _Walk:
    """Finds every subschema and follows the references between them."""

    def __init__(self, schema: JsonObject) -> None:
        self.states = 0
        self._nodes: dict[int, _Node] = {}
        self._pending: list[tuple[_Node, str, JsonObject]] = []
        self._resources: dict[str, JsonObject] = {}
        self._anchors: dict[tuple[int, str], JsonObject] = {}
        self._visit(schema, schema, nesting=0)
        while self._pending:  # a target may contain references too
            node, reference, resource = self._pending.pop()
            node.same_place.append(self._target(reference, resource))

    def order(self) -> list[_Node]:
        """Every node, after those that apply to the same place. A cycle among these would never
        end."""
        done: dict[int, bool] = {}
        ordered: list[_Node] = []

        def place(key: int, chain: int) -> None:
            if done.get(key) is False:
                raise UnusableSchema("a $ref leads back to itself without going deeper into the value")
            if key in done:
                return
            if chain > _MAX_CHAIN:
                raise UnusableSchema(f"it chains more than {_MAX_CHAIN} references")
            done[key] = False
            for other in self._nodes[key].same_place:
                place(other, chain + 1)
            done[key] = True
            ordered.append(self._nodes[key])

        for key in self._nodes:
            place(key, 0)
        return ordered

    def _visit(self, schema: JsonObject, resource: JsonObject, *, nesting: int) -> int:
        if nesting > _MAX_NESTING:
            raise UnusableSchema(f"it is nested deeper than {_MAX_NESTING} levels")
        if len(self._nodes) >= _MAX_SUBSCHEMAS:
            raise UnusableSchema(f"it has more than {_MAX_SUBSCHEMAS} subschemas")
        node = self._nodes[id(schema)] = _Node(key=id(schema), checks=1 + _own_checks(schema))
        self.states += _states(schema)
        resource = self._name(schema, resource)
        # Unevaluated places are found by checking the neighbours again.
        node.factor = 2 if any(keyword in schema for keyword in _UNEVALUATED) else 1
        for child in _children(schema, _SAME_PLACE_ONE, _SAME_PLACE_LIST, _SAME_PLACE_MAP):
            node.same_place.append(self._visit(child, resource, nesting=nesting + 1))
        for child in _children(schema, _BELOW_ONE, _BELOW_LIST, _BELOW_MAP):
            node.below.append(self._visit(child, resource, nesting=nesting + 1))
        for child in _children(schema, (), (), _DEFINITIONS):
            self._visit(child, resource, nesting=nesting + 1)
        for keyword in _REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                self._pending.append((node, reference, resource))
        return node.key

    def _name(self, schema: JsonObject, resource: JsonObject) -> JsonObject:
        """Register the names that a subschema declares; returns the resource that `#` refers to
        inside it."""
        identifier = schema.get("$id")
        if isinstance(identifier, str) and identifier.rstrip("#"):
            if identifier.startswith("#"):  # drafts 6 and 7 write anchors this way
                self._anchors[id(resource), identifier[1:]] = schema
            else:
                resource = self._resources[identifier.rstrip("#")] = schema
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors[id(resource), anchor] = schema
        return resource

    def _target(self, reference: str, resource: JsonObject) -> int:
        base, _, fragment = reference.partition("#")
        start = resource if not base else self._resources.get(base)
        if start is None:
            raise UnusableSchema(f'the $ref "{reference[:120]}" leads out of the schema, and nothing is fetched')
        found: JsonValue
        if not fragment:
            found = start
        elif fragment.startswith("/"):
            found = _pointed_at(start, unquote(fragment))
        else:
            found = self._anchors.get((id(start), fragment))
        if isinstance(found, bool):  # true and false cost nothing
            return self._constant()
        if not isinstance(found, dict):
            raise UnusableSchema(f'the $ref "{reference[:120]}" leads nowhere')
        if id(found) not in self._nodes:  # a place without a keyword, such as "#/x-types/a"
            return self._visit(found, start, nesting=0)
        return id(found)

    def _constant(self) -> int:
        return self._nodes.setdefault(0, _Node(key=0)).key


def _children(
    schema: JsonObject, single: tuple[str, ...], listed: tuple[str, ...], mapped: tuple[str, ...]
) -> Iterator[JsonObject]:
    for keyword in single:
        child = schema.get(keyword)
        if isinstance(child, dict):
            yield child
    for keyword in listed:
        entries = schema.get(keyword)
        if isinstance(entries, list):
            yield from (entry for entry in entries if isinstance(entry, dict))
    for keyword in mapped:
        members = schema.get(keyword)
        if isinstance(members, dict):
            yield from (member for member in members.values() if isinstance(member, dict))


def _pointed_at(start: JsonObject, pointer: str) -> JsonValue:
    """The target of an RFC 6901 pointer (in a URI fragment), or None."""
    place: JsonValue = start
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict):
            place = place.get(key)
        elif isinstance(place, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(place):
            place = place[int(key)]
        else:
            return None
    return place


def _own_checks(schema: JsonObject) -> int:
    """The cost of keywords that take more than one check of a value, or of each of its members."""
    options = schema.get("enum")
    compared = [schema.get("const"), *(options if isinstance(options, list) else ())]
    checks = _COMPARED * sum(_values_in(option) for option in compared if isinstance(option, dict | list))
    required = schema.get("required")
    checks += _NAME * len(required) if isinstance(required, list) else 0
    for keyword in ("dependentRequired", "dependencies"):
        dependents = schema.get(keyword)
        if isinstance(dependents, dict):
            checks += _NAME * sum(1 + len(names) for names in dependents.values() if isinstance(names, list))
    of_names = schema.get("patternProperties")
    checks += _PATTERN_OF_NAMES * len(of_names) if isinstance(of_names, dict) else 0
    return checks + _of_numbers(schema)


def _of_numbers(schema: JsonObject) -> int:
    """The cost of dividing. Raises UnusableSchema for an integer with more than _MAX_BITS bits."""
    options = schema.get("enum")
    numbers = [*map(schema.get, _NUMBERS), *(options if isinstance(options, list) else ())]
    if any(isinstance(number, int) and number.bit_length() > _MAX_BITS for number in numbers):
        raise UnusableSchema(f"it has a number of more than {_MAX_BITS} bits")
    divisor = schema.get("multipleOf")
    if divisor is None:
        return 0
    return _DIVISION if isinstance(divisor, int) else _EXACT_DIVISION


def _states(schema: JsonObject) -> int:
    """The size of the regular expressions of one subschema."""
    pattern, of_names = schema.get("pattern"), schema.get("patternProperties")
    patterns = [pattern, *(of_names if isinstance(of_names, dict) else ())]
    return sum(pattern_size(one) for one in patterns if isinstance(one, str))


def _values_in(value: JsonValue) -> int:
    """The number of values, counted up to _MAX_VALUES."""
    count, pending = 0, [value]
    while pending and count <= _MAX_VALUES:
        one = pending.pop()
        count += 1
        pending += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return count
