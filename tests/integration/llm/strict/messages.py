"""The messages API as Anthropic has it for models that think: what it refuses, in its words."""

import hashlib
import json
from collections.abc import Iterator
from itertools import chain

from tests.integration.llm.strict.provider import Answer, Json, PromptCache, Refusal, Said, is_closed, pieces
from tests.unit.llm.sdk_types import valid_messages_body

_THINKING = ("thinking", "redacted_thinking")
_SAMPLING = ("temperature", "top_p", "top_k")
_UNSUPPORTED = frozenset({"minimum", "maximum", "multipleOf", "minLength", "maxLength"})


def invalid_request(message: str) -> Refusal:
    error = {"type": "invalid_request_error", "message": message}
    return Refusal(status=400, body={"type": "error", "error": error})


class StrictMessages:
    """Thinking that it sent must come back as it was, in its place, with the key that it was sent
    to.

    - `adaptive` models think by themselves and refuse a budget. Others think only with one, and
      then want every turn of a tool loop to begin with thinking.
    - Each second reply has redacted thinking too.
    """

    paths = ("/messages",)

    def __init__(self, *, adaptive: bool) -> None:
        self._adaptive = adaptive
        self._count = 0
        self._cache = PromptCache()
        self._said: dict[str, list[Json]] = {}
        """Blocks by what identifies their message: the id of its first call, or its text."""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        valid_messages_body(json.dumps(body).encode())
        messages = body["messages"]
        start = _loop_start(messages)
        faults = chain(
            self._parameters(body),
            self._pairs(messages),
            self._altered(messages, key),
            self._left_out(messages, start),
            self._unthought(body, start),
        )
        return next(faults, None)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        blocks = list(self._thinking(body, said, key))
        if said.text:
            blocks.append({"type": "text", "text": said.text})
        for name, arguments in said.calls:
            blocks.append({"type": "tool_use", "id": self._id("toolu"), "name": name, "input": arguments})
        self._said[_identity(blocks)] = blocks
        prompt, cached = self._cache.count(body.get("tools"), body.get("system"), body["messages"])
        usage = {
            "input_tokens": prompt - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": len(json.dumps(blocks)) // 4,
        }
        whole = {
            "id": self._id("msg"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if said.calls else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        return Answer(whole=whole, events=tuple(_events(whole)), named=True)

    def _parameters(self, body: Json) -> Iterator[Refusal]:
        thinking = body.get("thinking", {})
        schema = body.get("output_config", {}).get("format", {}).get("schema", {})
        if not is_closed(schema):
            yield invalid_request(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        for name in sorted(_UNSUPPORTED & keywords_in(schema)):
            yield invalid_request(
                f"output_config.format.schema: For 'integer' type, property '{name}' is not supported"
            )
        if self._adaptive:
            for name in _SAMPLING:
                if name in body:
                    yield invalid_request(f"`{name}` is deprecated for this model.")
            if thinking.get("type") == "enabled":
                yield invalid_request(
                    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and'
                    ' "output_config.effort" to control thinking behavior.'
                )
        elif thinking.get("type") == "adaptive":
            yield invalid_request("adaptive thinking is not supported on this model")
        elif thinking.get("type") == "enabled":
            if body.get("temperature", 1) != 1:
                yield invalid_request("`temperature` may only be set to 1 when thinking is enabled.")
            if thinking["budget_tokens"] >= body["max_tokens"]:
                yield invalid_request("`max_tokens` must be greater than `thinking.budget_tokens`.")

    def _pairs(self, messages: list[Json]) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            called = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
            following = messages[index + 1]["content"] if index + 1 < len(messages) else []
            missing = called - {block.get("tool_use_id") for block in following}
            if missing:
                yield invalid_request(
                    f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after:"
                    f" {', '.join(sorted(missing))}. Each `tool_use` block must have a corresponding `tool_result` block in"
                    " the next message."
                )

    def _altered(self, messages: list[Json], key: str) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            for place, block in enumerate(message["content"]):
                if block["type"] == "thinking" and block["signature"] != _signed(block["thinking"], key):
                    yield invalid_request(f"messages.{index}.content.{place}: Invalid `signature` in `thinking` block")

    def _left_out(self, messages: list[Json], start: int) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            known = self._said.get(_identity(message["content"])) if message["role"] == "assistant" else None
            if known is None or index < start or not _of_thinking(message["content"]):
                continue
            if [block["type"] for block in message["content"]] != [block["type"] for block in known] or _of_thinking(
                message["content"]
            ) != _of_thinking(known):
                yield invalid_request(
                    f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message"
                    " cannot be modified. These blocks must remain as they were in the original response."
                )

    def _unthought(self, body: Json, start: int) -> Iterator[Refusal]:
        """Adaptive models take turns of other models, but not their own without the thinking."""
        enabled = body.get("thinking", {}).get("type") == "enabled"
        for index, message in enumerate(body["messages"]):
            kinds = [block["type"] for block in message["content"]]
            if index < start or message["role"] != "assistant" or "tool_use" not in kinds or kinds[0] in _THINKING:
                continue
            own = _of_thinking(self._said.get(_identity(message["content"]), []))
            if enabled or (self._adaptive and own):
                yield invalid_request(
                    f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`."
                    " When `thinking` is enabled, a final `assistant` message must start with a thinking block."
                )

    def _thinking(self, body: Json, said: Said, key: str) -> Iterator[Json]:
        if not self._adaptive and body.get("thinking", {}).get("type") != "enabled":
            return
        thought = said.reasoning or "I think about it."
        yield {"type": "thinking", "thinking": thought, "signature": _signed(thought, key)}
        if len(self._said) % 2:
            yield {"type": "redacted_thinking", "data": _signed("redacted", key)}

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:024x}"


def keywords_in(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keywords_in, value))
    return set(value).union(*map(keywords_in, value.values())) if isinstance(value, dict) else set()


def _identity(blocks: list[Json]) -> str:
    call = next((block["id"] for block in blocks if block["type"] == "tool_use"), None)
    return str(call or "".join(block["text"] for block in blocks if block["type"] == "text"))


def _of_thinking(blocks: list[Json]) -> list[Json]:
    return [block for block in blocks if block["type"] in _THINKING]


def _loop_start(messages: list[Json]) -> int:
    """The place after the last message of the user that is not of results."""
    own = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and message["content"][0]["type"] != "tool_result"
    ]
    return own[-1] + 1 if own else 0


def _events(whole: Json) -> Iterator[Json]:
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        place = {"index": index}
        match block["type"]:
            case "thinking":
                start, deltas = (
                    {**block, "thinking": "", "signature": ""},
                    [
                        *({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])),
                        {"type": "signature_delta", "signature": block["signature"]},
                    ],
                )
            case "text":
                start = {**block, "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            case "tool_use":
                start = {**block, "input": {}}
                deltas = [
                    {"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(block["input"]))
                ]
            case _:
                start, deltas = block, []
        yield {"type": "content_block_start", **place, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", **place, "delta": delta}
        yield {"type": "content_block_stop", **place}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _signed(text: str, key: str) -> str:
    return hashlib.sha256(f"{text} {key}".encode()).hexdigest() * 4
