"""Content parts of both protocols as parts of our own, which check them."""

import mimetypes
from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from domain.errors import ServiceError, Violation, invalid
from domain.threads.message import UserContent
from interfaces.http.bodies import decoded_body
from interfaces.http.openai.errors import unsupported
from interfaces.http.threads.schemas import FilePart, ImagePart, TextPart, user_content

_TEXTS = frozenset({"text", "input_text", "output_text"})
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}

PartT = TypeVar("PartT", ImagePart, FilePart)
Parts = Sequence[Mapping[str, object]]


def content_of(given: str | Parts | None, path: str) -> tuple[UserContent, ...]:
    """The content of a user's message. Raises INVALID `body_invalid`, `unsupported_parameter`,
    `attachments_too_large`, with paths below `path`."""
    if given is None or isinstance(given, str):
        return user_content(given or "", path)
    return user_content([_part(part, f"{path}.{index}") for index, part in enumerate(given)], path)


def text_of(given: str | Parts | None, path: str) -> str:
    """The text of a message that has nothing else. Raises INVALID `body_invalid`."""
    if given is None or isinstance(given, str):
        return given or ""
    texts = []
    for index, part in enumerate(given):
        text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
        if not isinstance(text, str):
            raise _wrong(f"{path}.{index}", "must be a part of text")
        texts.append(text)
    return "".join(texts)


def _part(part: Mapping[str, object], path: str) -> TextPart | ImagePart | FilePart:
    kind = part.get("type")
    if kind in _TEXTS:
        return TextPart(type="text", text=_text(part, "text", path))
    if kind == "image_url":
        return _image(_text(_inner(part, "image_url", path), "url", f"{path}.image_url"), f"{path}.image_url.url")
    if kind == "input_image":
        _refuse_file_id(part, path)
        return _image(_text(part, "image_url", path), f"{path}.image_url")
    if kind == "file":
        return _file(_inner(part, "file", path), f"{path}.file")
    if kind == "input_file":
        return _file(part, path)
    if kind == "input_audio":
        return _audio(_inner(part, "input_audio", path), f"{path}.input_audio")
    raise unsupported(f"{path}.type", f"Content parts of the type {str(kind)[:100]!r} are not supported.")


def _image(url: str, path: str) -> ImagePart:
    if not url.startswith(("data:", "http:", "https:")):
        raise _wrong(path, "must have an http, https or data URL")
    media_type, data = _data_url(url)
    if data is None:
        guessed = mimetypes.guess_type(urlsplit(url).path)[0] or ""
        guessed = guessed if guessed.startswith("image/") else "image/jpeg"
        return _checked(ImagePart, {"type": "image", "media_type": guessed, "url": url}, path)
    return _checked(ImagePart, {"type": "image", "media_type": media_type, "data": data}, path)


def _file(part: Mapping[str, object], path: str) -> FilePart:
    _refuse_file_id(part, path)
    name = part.get("filename")
    named = {"name": name} if isinstance(name, str) else {}
    guessed = mimetypes.guess_type(name)[0] if isinstance(name, str) else None
    url = part.get("file_url")
    if isinstance(url, str):
        media_type = guessed or mimetypes.guess_type(urlsplit(url).path)[0] or "application/pdf"
        return _checked(FilePart, {"type": "file", "media_type": media_type, "url": url, **named}, f"{path}.file_url")
    media_type, data = _data_url(_text(part, "file_data", path))
    media_type = media_type or guessed or "application/pdf"
    return _checked(FilePart, {"type": "file", "media_type": media_type, "data": data, **named}, f"{path}.file_data")


def _audio(part: Mapping[str, object], path: str) -> FilePart:
    kind = _AUDIO.get(_text(part, "format", path))
    if kind is None:
        raise _wrong(f"{path}.format", "must be wav or mp3")
    return _checked(FilePart, {"type": "file", "media_type": kind, "data": _text(part, "data", path)}, f"{path}.data")


def _checked(model: type[PartT], value: dict[str, object], path: str) -> PartT:
    try:
        return decoded_body(model, value)
    except ServiceError as exc:
        faults = "; ".join(f"{fault.path} {fault.message}" for fault in exc.violations)
        raise _wrong(path, faults or exc.detail) from exc


def _data_url(text: str) -> tuple[str, str | None]:
    """Media type and base64 of a data URL; for others nothing but the text itself as base64, if it
    is no URL."""
    if text.startswith("data:"):
        head, _, data = text[5:].partition(",")
        return head.partition(";")[0], data
    return ("", None) if text.startswith(("http:", "https:")) else ("", text)


def _refuse_file_id(part: Mapping[str, object], path: str) -> None:
    if part.get("file_id") is not None:
        raise unsupported(f"{path}.file_id", "There is no Files API here: send files as data, or by URL.")


def _inner(part: Mapping[str, object], name: str, path: str) -> Mapping[str, object]:
    found = part.get(name)
    if not isinstance(found, Mapping):
        raise _wrong(f"{path}.{name}", "must be a JSON object")
    return found


def _text(part: Mapping[str, object], name: str, path: str) -> str:
    found = part.get(name)
    if not isinstance(found, str):
        raise _wrong(f"{path}.{name}", "must be a string")
    return found


def _wrong(path: str, message: str) -> ServiceError:
    return invalid("body_invalid", "The request body is not valid.", Violation(path=path, message=message))
