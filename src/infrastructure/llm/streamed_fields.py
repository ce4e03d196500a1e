"""Fields of a message that only its provider knows: their pieces, put together."""

from domain.json_value import JsonObject, JsonValue

_WHOLE = frozenset({"type", "id", "format", "index", "role", "name"})
"""Texts that each piece repeats. Other texts come in pieces."""
MAX_ENTRIES = 10_000
"""Of a list. Fields with a longer one cannot go back."""
_SAME_ENTRY = ("type", "id")
"""Entries of a list with the same `index` are pieces of one entry, unless one of these differs."""


class _Pieces(list[str]):
    """A text in pieces."""


class _Entries(list[object]):
    """Entries of a list. `newest` are those with an index."""

    def __init__(self) -> None:
        super().__init__()
        self.newest: dict[int | str, dict[str, object]] = {}


class StreamedFields:
    """Rules:
    - Texts are joined, except those that name something.
    - Objects are merged. Entries of lists are merged into the newest of their `index`; entries
      without one are appended.
    - Other values are replaced. Null changes nothing.
    """

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}
        self._too_deep = False

    def add(self, fields: JsonObject) -> None:
        """Add pieces."""
        try:
            _merge(self._fields, fields)
        except RecursionError:
            self._too_deep = True

    def add_whole(self, fields: JsonObject) -> None:
        """Add fields that did not come in pieces."""
        self._fields.update(fields)

    def finished(self) -> JsonObject:
        """The complete fields, without empty ones. Raises ValueError for a list that is too long,
        RecursionError for fields that are too deep."""
        if self._too_deep:
            raise RecursionError
        return {name: value for name, part in self._fields.items() if (value := _finished(part)) not in _EMPTY}


_EMPTY: tuple[JsonValue, ...] = (None, "", [], {})


def _merge(into: dict[str, object], fields: JsonObject) -> None:
    for name, value in fields.items():
        known = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif isinstance(value, str) and name not in _WHOLE:
            if isinstance(known, _Pieces):
                known.append(value)
            else:
                into[name] = _Pieces([value])
        elif isinstance(value, dict):
            _merge(_object_at(into, name), value)
        elif isinstance(value, list):
            entries = known if isinstance(known, _Entries) else _Entries()
            into[name] = entries
            for entry in value:
                _add_entry(entries, entry)
        else:
            into[name] = value


def _object_at(into: dict[str, object], name: str) -> dict[str, object]:
    known = into.get(name)
    if isinstance(known, dict):
        return known
    into[name] = made = dict[str, object]()
    return made


def _add_entry(entries: _Entries, entry: JsonValue) -> None:
    index = entry.get("index") if isinstance(entry, dict) else None
    known = entries.newest.get(index) if isinstance(index, int | str) else None
    if known is not None and isinstance(entry, dict) and _are_of_one(known, entry):
        _merge(known, entry)
        return
    if len(entries) > MAX_ENTRIES:
        return
    if not isinstance(entry, dict):
        entries.append(entry)
        return
    made: dict[str, object] = {}
    _merge(made, entry)
    entries.append(made)
    if isinstance(index, int | str):
        entries.newest[index] = made


def _are_of_one(known: dict[str, object], entry: JsonObject) -> bool:
    return all(known.get(name) is None or entry.get(name) is None or known[name] == entry[name] for name in _SAME_ENTRY)


def _finished(value: object) -> JsonValue:
    match value:
        case _Pieces():
            return "".join(value)
        case list() if len(value) > MAX_ENTRIES:
            raise ValueError("a list has too many entries")
        case list():
            return [_finished(entry) for entry in value]
        case dict():
            return {name: _finished(entry) for name, entry in value.items()}
        case str() | int() | float() | bool():
            return value
        case _:
            return None
