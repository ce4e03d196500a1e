"""Images and files as vendors take them: the formats they refuse, and models that take fewer kinds,
in their words."""

import base64
from collections.abc import Iterator

from tests.integration.llm.strict.chat import bad_request
from tests.integration.llm.strict.messages import invalid_request as anthropic_refusal
from tests.integration.llm.strict.provider import Answer, Family, Json, Refusal, Said

_KINDS = {
    "input_image": "image",
    "image_url": "image",
    "image": "image",
    "input_file": "pdf",
    "file": "pdf",
    "document": "pdf",
    "input_audio": "audio",
}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class StrictInputs:
    """A family whose model takes only these kinds of input. `seen` has the kinds of each request
    that it took."""

    def __init__(self, family: Family, *kinds: str) -> None:
        self._family = family
        self._taken = frozenset(kinds)
        self.seen: list[list[str]] = []

    @property
    def paths(self) -> tuple[str, ...]:
        return self._family.paths

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        parts = list(_parts(body.get("messages") or body.get("input")))
        for part in parts:
            refusal = self._refused(path, part)
            if refusal is not None:
                return refusal
        refusal = self._family.refusal(path, body, key)
        if refusal is None:
            self.seen.append([_KINDS[part["type"]] for part in parts])
        return refusal

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        return self._family.answer(body, said, key)

    def _refused(self, path: str, part: Json) -> Refusal | None:
        kind = part["type"]
        if _KINDS[kind] not in self._taken:
            if path == "/messages":
                return anthropic_refusal(f"This model does not support {_KINDS[kind]} input.")
            return bad_request(f"Invalid content type. {kind} is only supported by certain models.")
        media_type, data = _content_of(part)
        if not data:
            return None
        if not base64.b64decode(data, validate=True):
            return bad_request("Could not process the input: it is empty.")
        if _KINDS[kind] == "image" and media_type not in _IMAGES:
            return bad_request("You uploaded an unsupported image. Please make sure your image is valid.")
        if _KINDS[kind] == "pdf" and media_type != "application/pdf":
            return bad_request(
                f"Expected a base64-encoded data URL with an application/pdf MIME type, got {media_type}."
            )
        return None


def _parts(value: object) -> Iterator[Json]:
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        if value.get("type") in _KINDS:
            yield value
        elif "content" in value or "output" in value:
            yield from _parts(value.get("content"))
            yield from _parts(value.get("output"))


def _content_of(part: Json) -> tuple[str, str]:
    """Media type and base64 data; both empty for a part by URL."""
    match part:
        case {"source": {"type": "base64", "media_type": media_type, "data": data}}:
            return media_type, data
        case {"input_audio": {"format": format_, "data": data}}:
            assert format_ in ("wav", "mp3")
            return f"audio/{format_}", data
        case {"image_url": {"url": url}} | {"image_url": str(url)} | {"file": {"filename": _, "file_data": url}}:
            return _of_data_url(url)
        case {"type": "input_file", "filename": _, "file_data": url}:
            return _of_data_url(url)
        case {"source": {"type": "url"}} | {"file_url": _}:
            return "", ""
        case _:
            raise AssertionError(f"a part that no vendor knows: {sorted(part)}")


def _of_data_url(url: str) -> tuple[str, str]:
    if not url.startswith("data:"):
        return "", ""
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return media_type, data
