"""Parts of A2A messages as content of our messages, and stored messages as those of A2A."""

import mimetypes
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from domain.a2a.artifacts import file_part
from domain.a2a.tasks import context_of
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from domain.threads.attachments import IMAGE_TYPES
from domain.threads.message import FileContent, ImageContent, Message, Role, TextContent, UserContent
from interfaces.http.a2a.errors import unsupported_content
from interfaces.http.a2a.schemas import PartBody
from interfaces.http.bodies import decoded_body
from interfaces.http.threads.schemas import FilePart, ImagePart, TextPart, user_content

INPUT_MODES = (
    "text/plain",
    "text/markdown",
    "text/html",
    "text/csv",
    "application/json",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
)
"""Media types of files that agents take, and all others of text and audio."""
_FAMILIES = ("text/", "audio/")
_PATH = "message.parts"


def content_of(parts: Sequence[PartBody]) -> tuple[UserContent, ...]:
    """Raises INVALID `body_invalid`, `content_type_unsupported`, `attachments_too_large`."""
    return user_content([_part(part, f"{_PATH}.{index}") for index, part in enumerate(parts)], _PATH)


def history_of(run: Run, messages: Iterable[Message], length: int | None) -> list[JsonValue]:
    """The newest messages of a task: those of its user and what the agent said, without calls of
    tools."""
    if length == 0:
        return []
    said = [message for message in messages if message.role is not Role.TOOL]
    told = [_message(run, message.id, message.role, message.content) for message in said]
    if run.retry_of is None and not any(message.role is Role.USER for message in said):
        told.insert(0, _message(run, f"{run.id}-input", Role.USER, run.input))
    shown: list[JsonValue] = [message for message in told if message["parts"]]
    return shown if length is None else shown[-length:]


def _part(part: PartBody, path: str) -> TextPart | ImagePart | FilePart:
    part.require_one(path)
    if part.text is not None:
        return TextPart(type="text", text=part.text)
    if part.has_data:
        return TextPart(type="text", text=msgspec.json.encode(part.data).decode())
    media_type = part.media_type or _guessed(part)
    if media_type not in INPUT_MODES and not media_type.startswith(_FAMILIES):
        raise unsupported_content(media_type)
    given = {"data": part.raw.translate(_STANDARD)} if part.raw is not None else {"url": part.url}
    if media_type in IMAGE_TYPES:
        return decoded_body(ImagePart, {"type": "image", "media_type": media_type, **given})
    name = {} if part.filename is None else {"name": part.filename}
    return decoded_body(FilePart, {"type": "file", "media_type": media_type, **given, **name})


_STANDARD = str.maketrans("-_", "+/")
"""ProtoJSON takes both alphabets of base64."""


def _guessed(part: PartBody) -> str:
    name = part.filename or urlsplit(part.url or "").path
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _message(run: Run, identifier: str, role: Role, content: Iterable[object]) -> JsonObject:
    parts: list[JsonValue] = [view for part in content if (view := _part_view(part)) is not None]
    return {
        "messageId": identifier,
        "role": "ROLE_USER" if role is Role.USER else "ROLE_AGENT",
        "taskId": run.id,
        "contextId": context_of(run),
        "parts": parts,
    }


def _part_view(part: object) -> JsonObject | None:
    match part:
        case TextContent() if part.text:
            return {"text": part.text}
        case ImageContent() | FileContent():
            return file_part(part)
        case _:
            return None
