"""Definitions of workflows as text: read, and compared with the definition that they are sent
with."""

import asyncio
from collections.abc import Mapping
from dataclasses import fields

from domain.errors import Violation, invalid
from domain.workflows.definition_json import NAME_KEYS
from domain.workflows.graph import WorkflowDefinition
from interfaces.definition_text import MAX_YAML, DefinitionTextError, read_definition
from interfaces.http.bodies import decoded_body
from interfaces.http.workflows.schemas import WorkflowBody


async def definition_of(text: str, *, path: str = "") -> WorkflowDefinition:
    """The unchecked definition. Raises INVALID at `path`, with the position in the text."""
    is_json = text.lstrip().startswith("{")
    if not is_json and len(text) > MAX_YAML:
        raise _wrong(path, f"is longer than {MAX_YAML // 1024} KiB of YAML; write it as JSON.")
    try:
        # In a thread: parsing YAML is slow.
        document = await asyncio.to_thread(read_definition, text, is_json=is_json, texts=NAME_KEYS, aliases=False)
    except DefinitionTextError as error:
        raise _wrong(path, str(error)) from error
    return decoded_body(WorkflowBody, document).to_definition()


def parts_of(definition: WorkflowDefinition) -> dict[str, object]:
    return {each.name: getattr(definition, each.name) for each in fields(definition)}


def source_of(text: str) -> str | None:
    """What is stored of a text that a definition was read from: YAML, with its comments; of JSON
    nothing."""
    return None if text.lstrip().startswith("{") else text.replace("\r\n", "\n")


async def read_beside(text: str, sent: Mapping[str, object]) -> WorkflowDefinition:
    """The definition that the text says. `sent` are the parts that came with it, by field. Raises
    INVALID `definition_invalid` where one differs: the console would edit another workflow than the
    one that runs."""
    definition = await definition_of(text, path="text")
    wrong = [
        Violation(path=name, message="differs from the text")
        for name, value in sent.items()
        if getattr(definition, name) != value
    ]
    if wrong:
        raise invalid("definition_invalid", "The text is not that of the definition.", *wrong)
    return definition


def _wrong(path: str, message: str) -> Exception:
    return invalid("definition_invalid", "The definition cannot be read.", Violation(path=path, message=message))
