"""Images and files that the tools of a run returned, as artifacts of its task."""

from collections.abc import Collection, Iterable
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from domain.threads.attachments import MAX_ATTACHED_BYTES, MAX_ATTACHMENTS, size_of
from domain.threads.message import FileContent, ImageContent, Message

OUTPUT_MODES = "output_modes"
"""The field of a run's `client_request` with the media types that its client takes."""


def add_files(
    task: JsonObject, run: Run, messages: Iterable[Message], room: int = MAX_ATTACHED_BYTES
) -> tuple[list[JsonObject], int]:
    """Add the files of a run with these messages to its task: those whose media type the client
    takes, up to MAX_ATTACHMENTS, in sum up to `room` bytes. The task's `metadata` says how many are
    left out. Returns the artifacts, and the room that is left."""
    modes = cast("list[str]", (run.client_request or {}).get(OUTPUT_MODES) or [])
    made: list[JsonObject] = []
    left_out = 0
    for message in messages:
        for result in message.tool_results:
            about: JsonObject = {"toolCall": {"id": result.tool_id, "name": result.tool_name}}
            for number, part in enumerate(result.attachments):
                if not _takes(modes, part.media_type):
                    continue
                size = size_of(part)
                if size > room or len(made) == MAX_ATTACHMENTS:
                    left_out += 1
                    continue
                room -= size
                shown = file_part(part)
                name = shown.get("filename", result.tool_name)
                made.append(
                    {"artifactId": f"{result.tool_id}-{number}", "name": name, "parts": [shown], "metadata": about}
                )
    if made:
        task["artifacts"] = [*cast("list[JsonValue]", task.get("artifacts", [])), *made]
    if left_out:
        task["metadata"] = {"filesLeftOut": left_out}
    return made, room


def file_part(part: ImageContent | FileContent) -> JsonObject:
    place: JsonObject = {"url": part.url} if part.data is None else {"raw": part.data}
    name: JsonObject = {"filename": part.name} if isinstance(part, FileContent) and part.name else {}
    return {**place, **name, "mediaType": part.media_type}


def _takes(modes: Collection[str], media_type: str) -> bool:
    """A client that names no media types takes all."""
    family = media_type.partition("/")[0]
    return not modes or any(mode in modes for mode in (media_type, f"{family}/*", "*/*"))
