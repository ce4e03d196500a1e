"""Values of a form as text, and their conversion to JSON, with faults by field."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from decimal import Decimal

from domain.errors import Violation
from domain.json_value import JsonObject, JsonValue
from domain.runs.limits import LimitSettings
from interfaces.console.json_text import JsonTextError, json_of

_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_ROW = re.compile(r"[a-z0-9]{1,16}")
LIMITS = tuple(field.name for field in fields(LimitSettings))
WHOLE_LIMITS = frozenset(field.name for field in fields(LimitSettings) if field.type == int | None)


class FormValues:
    """Fields by name. Unreadable values are omitted and noted in `wrong` under the field's name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name: value.replace("\r\n", "\n") for name, value in values.items()}
        self.wrong: list[Violation] = []

    def __getitem__(self, name: str) -> str:
        return self._values.get(name, "")

    def has(self, name: str) -> bool:
        return name in self._values

    def again(self) -> "FormValues":
        """The same fields without faults."""
        return FormValues(self._values)

    def label(self, name: str) -> str:
        """The label of a field; for rows the name entered in the row."""
        kind, _, rest = name.partition(".")
        row, _, field = rest.partition(".")
        if not field:
            return name.replace("_", " ").replace(".", ", ")
        names = (self[f"{kind}.{row}.{name}"] for name in ("pattern", "id", "claim", "name"))
        named = next(filter(None, names), "without a name")
        return f"{kind} {named}, {field.replace('_', ' ')}"

    def says_more(self, row: str, but: tuple[str, ...]) -> bool:
        """Whether a row (`PREFIX.ROW`) has values, except for these fields and default values."""
        left_out = {f"{row}.{name}" for name in but}
        return any(
            value not in ("", "any") for name, value in self.beginning(f"{row}.").items() if name not in left_out
        )

    def beginning(self, prefix: str) -> dict[str, str]:
        """Fields with this prefix."""
        return {name: value for name, value in self._values.items() if name.startswith(prefix)}

    def note(self, name: str, message: str) -> None:
        self.wrong.append(Violation(path=name, message=message))

    def lines(self, name: str) -> list[JsonValue]:
        """One entry per line, without blank lines."""
        return [line.strip() for line in self[name].splitlines() if line.strip()]

    def words(self, name: str) -> list[JsonValue]:
        """Entries separated by commas or lines."""
        return [word.strip() for word in re.split(r"[,\n]", self[name]) if word.strip()]

    def ticked(self, prefix: str) -> list[JsonValue]:
        """Names of ticked boxes, without the prefix."""
        return [name.removeprefix(prefix) for name in self._values if name.startswith(prefix)]

    def rows(self, prefix: str) -> list[str]:
        """Ids of the rows of a list with fields `PREFIX.ROW.FIELD`, in order."""
        ids = (name.split(".")[1] for name in self._values if name.startswith(f"{prefix}.") and name.count(".") > 1)
        return [row for row in dict.fromkeys(ids) if _ROW.fullmatch(row)]

    def whole(self, name: str) -> int | None:
        """A whole number; None if empty."""
        text = self[name].strip()
        if text and not _INTEGER.fullmatch(text):
            self.note(name, "must be a whole number")
            return None
        return int(text) if text else None

    def number(self, name: str) -> float | None:
        """A number; None if empty."""
        text = self[name].strip()
        if text and not _NUMBER.fullmatch(text):
            self.note(name, "must be a number, such as 2.5")
            return None
        return float(text) if text else None

    def json_object(self, name: str) -> JsonObject | None:
        """A JSON object; None if empty."""
        text = self[name].strip()
        if not text:
            return None
        try:
            value = json_of(text)
        except JsonTextError as error:
            self.note(name, str(error))
            return None
        if not isinstance(value, dict):
            self.note(name, "must be a JSON object")
            return None
        return value

    def limits(self) -> JsonObject:
        """All limits; null where empty."""
        return {
            name: self.whole(f"limits.{name}") if name in WHOLE_LIMITS else self.number(f"limits.{name}")
            for name in LIMITS
        }

    def allowlist(self) -> list[JsonValue] | None:
        """The allowlist; None inherits that of the next layer."""
        match self["allowlist"]:
            case "nothing":
                return []
            case "listed":
                return self.lines("allowlist_entries")
            case _:
                return None


def fields_of(settings: type, type_: object) -> tuple[str, ...]:
    """Fields of a dataclass with this type."""
    return tuple(field.name for field in fields(settings) if field.type == type_)


def limit_values(limits: Mapping[str, object]) -> dict[str, str]:
    return {f"limits.{name}": text(limits.get(name)) for name in LIMITS}


def allowlist_values(allowlist: list[str] | None) -> dict[str, str]:
    mode = "inherit" if allowlist is None else "listed" if allowlist else "nothing"
    return {"allowlist": mode, "allowlist_entries": joined(allowlist or ())}


def joined(entries: Iterable[str]) -> str:
    """One entry per line."""
    return "\n".join(entries)


def json_text(value: object) -> str:
    """A JSON value as indented text; empty for null."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)


def text(value: object) -> str:
    """A value as the text of a field."""
    if value is None:
        return ""
    return format(Decimal(str(value)).normalize(), "f") if isinstance(value, float) else str(value)
