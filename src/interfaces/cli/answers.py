"""Reads the service's answers as the views of the HTTP API. Fields that a view does not have are
dropped."""

from typing import TypeVar

from domain.json_value import JsonObject
from interfaces.cli.failures import UnexpectedAnswer

ViewT = TypeVar("ViewT")


def read_as(view: type[ViewT], document: object) -> ViewT:
    """The document as a view. Raises UnexpectedAnswer where a field is missing or has another
    type."""
    import msgspec

    try:
        return msgspec.convert(document, view)
    except msgspec.ValidationError as exc:
        raise UnexpectedAnswer(str(exc)) from exc


def parsed_as(view: type[ViewT], text: str) -> ViewT:
    """JSON text as a view. Raises UnexpectedAnswer."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=view)
    except msgspec.DecodeError as exc:
        raise UnexpectedAnswer(str(exc)) from exc


def entries_of(view: type[ViewT], page: JsonObject) -> list[ViewT]:
    """The entries of a list's page. Raises UnexpectedAnswer."""
    data = page.get("data")
    return [read_as(view, entry) for entry in data] if isinstance(data, list) else []
