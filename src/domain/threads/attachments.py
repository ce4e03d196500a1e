"""Images and files in messages: their media types, their bounds, and what is shown in place of
their bytes."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from domain.errors import ServiceError, Violation, invalid
from domain.ids import SourceId
from domain.json_value import JsonObject
from domain.threads.message import Content, FileContent, ImageContent

MAX_ATTACHMENTS = 20
"""Images and files in one message or one tool result."""
MAX_ATTACHED_BYTES = 7 * 1024 * 1024
"""Their bytes in sum. Base64 adds a third, so a message fits the limit of a request."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that models and browsers read."""
PDF = "application/pdf"
_TYPE_OF_ENDING = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": PDF,
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "csv": "text/csv",
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/x-ndjson"})
_SNIFFED = 8 * 1024
_BASE64_RATIO = 3 / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedSource:
    """A source of the thread whose bytes become a part of the message."""

    source_id: SourceId


class FileKind(StrEnum):
    """How models read a file. `other`: no model reads it."""

    PDF = "pdf"
    AUDIO = "audio"
    TEXT = "text"
    OTHER = "other"


def kind_of_file(media_type: str) -> FileKind:
    if media_type == PDF:
        return FileKind.PDF
    if media_type.startswith("audio/"):
        return FileKind.AUDIO
    if media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(("+json", "+xml")):
        return FileKind.TEXT
    return FileKind.OTHER


def size_of(part: ImageContent | FileContent) -> int:
    """Size in bytes; 0 for a part by URL."""
    return 0 if part.data is None else _decoded_size(part.data)


def text_of(part: FileContent) -> str | None:
    """The text of an inline text file; None for any other."""
    if part.data is None or kind_of_file(part.media_type) is not FileKind.TEXT:
        return None
    return base64.b64decode(part.data).decode("utf-8-sig", errors="replace")


def attachment(name: str, content: bytes) -> ImageContent | FileContent:
    """A file as a part of a message; its media type by its first bytes, or by its name."""
    media_type = _media_type(name, content)
    data = base64.b64encode(content).decode()
    if media_type in IMAGE_TYPES:
        return ImageContent(media_type=media_type, data=data)
    return FileContent(media_type=media_type, name=name, data=data)


def require_few_attachments(content: Iterable[Content | AttachedSource], path: str) -> int:
    """The bytes of images and files; those of sources are not known yet. Raises INVALID
    `attachments_too_large` for more than MAX_ATTACHMENTS, sources too, or MAX_ATTACHED_BYTES."""
    parts = [part for part in content if isinstance(part, ImageContent | FileContent | AttachedSource)]
    if len(parts) > MAX_ATTACHMENTS:
        raise _too_large(path, f"must have at most {MAX_ATTACHMENTS} images and files")
    size = sum([size_of(part) for part in parts if not isinstance(part, AttachedSource)])
    require_small(size, path)
    return size


def require_small(size: int, path: str) -> None:
    """Raises INVALID `attachments_too_large` for more than MAX_ATTACHED_BYTES."""
    if size > MAX_ATTACHED_BYTES:
        raise _too_large(path, f"must have at most {MAX_ATTACHED_BYTES // 2**20} MiB of images and files")


def _too_large(path: str, message: str) -> ServiceError:
    return invalid("attachments_too_large", "The attachments are too large.", Violation(path=path, message=message))


def without_bytes(part: JsonObject) -> JsonObject:
    """A part of a user's message as JSON, with sizes in place of the bytes of images and files:
    lists of runs show it so."""
    return _sized(part) if part["type"] == "image" else without_file_bytes(part)


def without_file_bytes(part: JsonObject) -> JsonObject:
    """A part as JSON, with the sizes of files in place of their bytes: events and webhooks show it
    so."""
    if part["type"] == "file":
        return _sized(part)
    if part["type"] == "tool_result" and "files" in part:
        return {**part, "files": [_sized(file) for file in cast("list[JsonObject]", part["files"])]}
    return part


def _sized(part: JsonObject) -> JsonObject:
    if "data" not in part:
        return part
    shown = {name: value for name, value in part.items() if name != "data"}
    return {**shown, "bytes": _decoded_size(cast(str, part["data"]))}


def _decoded_size(data: str) -> int:
    return int(len(data.rstrip("=")) * _BASE64_RATIO)


def _media_type(name: str, content: bytes) -> str:
    beginning = content[:_SNIFFED]
    if beginning.startswith(b"%PDF-"):
        return PDF
    known = _TYPE_OF_ENDING.get(name.rpartition(".")[2].lower())
    if known is not None and known != PDF:
        return known
    return "application/octet-stream" if b"\0" in beginning or not _is_utf8(content) else "text/plain"


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
