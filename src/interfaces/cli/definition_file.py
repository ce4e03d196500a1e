"""Reads a YAML or JSON file to be applied."""

from collections.abc import Collection
from pathlib import Path
from typing import cast

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import BadUsage


def load_definition(path: Path, *, what: str, needs: str, texts: Collection[str] = ()) -> JsonObject:
    """The mapping in a file. `what` and `needs` describe it in error messages.
    - Under the keys `texts`, YAML's bare `true`, `no`, `on` and the like are strings.
    - Raises BadUsage naming the file and the position of a syntax error.
    """
    document = _read(path, texts)
    if not isinstance(document, dict) or not isinstance(document.get("name"), str) or not document["name"]:
        raise BadUsage(f"{path} is no {what}: it must be a mapping with at least {needs}.")
    return document


def commented_text(path: Path) -> JsonObject:
    """`text`: the YAML of a file that was loaded, for its comments. Nothing of JSON, and of YAML
    that the service would not read: with aliases, or too long."""
    from interfaces.definition_text import MAX_YAML, DefinitionTextError, read_definition

    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json" or len(text) > MAX_YAML or text.lstrip().startswith("{"):
        return {}
    try:
        read_definition(text, is_json=False, aliases=False)
    except DefinitionTextError:
        return {}
    return {"text": text}


def load_object(path: Path) -> JsonObject:
    """Any mapping in a file. Raises BadUsage naming the file and the position of a syntax error."""
    document = _read(path, ())
    if not isinstance(document, dict):
        raise BadUsage(f"{path} must be a mapping.")
    return document


def load_value(path: Path) -> JsonValue:
    """Any value in a file. Raises BadUsage naming the file and the position of a syntax error."""
    return cast("JsonValue", _read(path, ()))


def _read(path: Path, texts: Collection[str]) -> object:
    from interfaces.definition_text import DefinitionTextError, read_definition

    try:
        return read_definition(path.read_text(encoding="utf-8"), is_json=path.suffix == ".json", texts=texts)
    except OSError as exc:
        raise BadUsage(f"{path} cannot be read: {exc.strerror or 'not a file'}.") from exc
    except UnicodeDecodeError as exc:
        raise BadUsage(f"{path} is not UTF-8 text.") from exc
    except DefinitionTextError as exc:
        raise BadUsage(f"{path} {exc}") from exc
