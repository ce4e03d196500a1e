"""Differences between two versions for people: by field, with lists and texts line by line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff

CONTEXT_LINES = 2
_NO_SETTINGS = frozenset({"id", "version", "created_at", "updated_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field and its diff: lines begin with `+`, `-`, a space, or `@` for omitted lines."""

    field: str
    lines: tuple[str, ...]


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[Change, ...]:
    """In the order of the fields; each tool policy and each limit is a field."""
    old, new = _fields(before), _fields(after)
    return tuple(
        Change(field=name, lines=difference(old.get(name, ()), new.get(name, ())))
        for name in dict.fromkeys((*old, *new))
        if old.get(name, ()) != new.get(name, ())
    )


def _fields(view: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in view.items():
        if name in _NO_SETTINGS:
            continue
        if isinstance(value, dict):
            fields |= {f"{name} · {key}": _lines(part) for key, part in value.items() if part is not None}
        else:
            fields[name] = _lines(value)
    return fields


def _lines(value: object) -> tuple[str, ...]:
    match value:
        case None:
            return ("not set",)
        case bool():
            return ("yes" if value else "no",)
        case str():
            return tuple(value.split("\n")) if value else ()
        case list():
            return tuple(each if isinstance(each, str) else _stated(each) for each in value) or ("nothing",)
        case dict():
            return tuple(f"{key}: {_stated(part)}" for key, part in value.items()) or ("empty",)
        case _:
            return (_stated(value),)


def _stated(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def difference(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Lines as `Change` has them; empty if nothing differs."""
    lines = list(unified_diff(before, after, n=CONTEXT_LINES, lineterm=""))[2:]
    # The first mark only says that lines before the change are omitted.
    return tuple("@ …" if line.startswith("@@") else line for line in lines[1:])
