"""Changes of a stored value: new values by the name of the field."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

T = TypeVar("T")
Changes = Mapping[str, object]
"""Fields to replace; missing ones stay. The interface has checked their types."""


def with_changes(value: T, changes: Changes) -> T:
    """A dataclass with these fields replaced. Raises what its construction raises, TypeError for an
    unknown field."""
    return replace(value, **changes)  # type: ignore[type-var]


def changed_fields(before: T, after: T) -> list[str]:
    """Names of the changed fields, in their order."""
    return [
        field.name
        for field in fields(before)  # type: ignore[arg-type]
        if getattr(before, field.name) != getattr(after, field.name)
    ]
