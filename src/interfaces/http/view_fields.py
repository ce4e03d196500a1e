"""Types of fields that views share. A text in the metadata of a field is its description in the
OpenAPI document, a `Format` that of its strings."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a string, such as `date-time`."""

    name: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of views that their fields `type` tell apart, and its name in the OpenAPI document.
    The annotated type is a mapping: the command line decodes it as that."""

    name: str
    members: tuple[type, ...]


Timestamp = Annotated[str, Format("date-time")]
"""RFC 3339 in UTC."""
CreatedAt = Annotated[Timestamp, "Time of the creation."]
UpdatedAt = Annotated[Timestamp, "Time of the last change."]
ExpiresAt = Annotated[Timestamp, "From this time on it is invalid."]
Version = Annotated[int, "Counts the changes, from 1. `If-Match` takes it."]
Warnings = Annotated[list[str], "Policies that match no tool, as sentences."]
Items = Annotated[list[ItemT], "The entries of the page, in the order of the list."]
NextCursor = Annotated[str | None, "Cursor of the next page; null on the last one."]
