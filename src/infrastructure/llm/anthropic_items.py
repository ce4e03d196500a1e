"""Items of the messages API: the blocks of a reply, as they go back. Neutral text and calls lose
thinking, its signatures, and calls of the provider's own tools."""

from collections.abc import Sequence

import msgspec

from application.models.ports import RequestedCall
from domain.json_value import JsonObject
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.items_check import distinct_ids
from infrastructure.llm.wire_content import malformed_params

_encode = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str | None).decode


class _Call(msgspec.Struct):
    type: str = ""
    id: str | None = None


_decode_calls = msgspec.json.Decoder(list[_Call]).decode


class OwnBlock:
    """A block that is neither text nor a call of our tools. Its pieces follow its start."""

    __slots__ = ("_start", "input", "signature", "thinking", "type")

    def __init__(self, kind: str, start: bytes) -> None:
        self.type = kind
        self._start = start
        self.thinking: list[str] = []
        self.signature: list[str] = []
        self.input: list[str] = []

    @property
    def is_unsigned(self) -> bool:
        """Whether this is thinking that the provider would not take back."""
        return self.type == "thinking" and not _joined(_decode_fields(self._start).get("signature"), self.signature)

    def encoded(self) -> bytes:
        """The block as it came."""
        if not (self.thinking or self.signature or self.input):
            return self._start
        fields = _decode_fields(self._start)
        for name, pieces in (("thinking", self.thinking), ("signature", self.signature)):
            if pieces:
                fields[name] = msgspec.Raw(_encode(_joined(fields.get(name), pieces)))
        if self.input:
            fields["input"] = msgspec.Raw("".join(self.input).encode())
        return _encode(fields)


def _joined(start: msgspec.Raw | None, pieces: Sequence[str]) -> str:
    return ((_decode_text(start) if start is not None else None) or "") + "".join(pieces)


def text_block(text: str) -> bytes | None:
    """The API refuses text without visible characters."""
    return _encode({"type": "text", "text": text}) if text.strip() else None


def call_block(call_id: str | None, call: RequestedCall) -> bytes:
    """A call as it came; malformed arguments inside an object."""
    given = call.arguments if call.malformed is None else malformed_params(call.malformed)
    block: JsonObject = {"type": "tool_use", "id": call_id or "", "name": call.name, "input": given}
    return _encode(block)


def call_ids(items: ProviderItems) -> list[str]:
    """The provider's ids of the calls, in their order. Raises ValueError if one is missing or
    repeated."""
    return distinct_ids([block.id for block in _decode_calls(items.data) if block.type == "tool_use"])
