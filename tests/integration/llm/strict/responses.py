"""The Responses API as OpenAI has it for reasoning models: what it refuses, in its words."""

import hashlib
import json
from collections.abc import Iterator
from itertools import chain

from tests.integration.llm.strict.provider import Answer, Json, PromptCache, Refusal, Said, is_closed, pieces
from tests.unit.llm.sdk_types import valid_responses_body

_SAMPLING = ("temperature", "top_p")
_PREFIXES = {"function_call": "fc", "reasoning": "rs", "message": "msg"}


def invalid_request(
    message: str, *, param: str | None = "input", code: str | None = None, status: int = 400
) -> Refusal:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Refusal(status=status, body={"error": error})


class StrictResponses:
    """Reasoning that it sent must come back as it was, in its place, with the key that it was sent
    to.

    - `plain` models have no reasoning, and refuse to be asked for it, or for summaries of it.
    - `unverified` accounts get no summaries.
    - Chat completions of the same models refuse function tools.
    """

    paths = ("/responses", "/chat/completions")

    def __init__(self, *, plain: frozenset[str] = frozenset(), unverified: bool = False) -> None:
        self._plain = plain
        self._unverified = unverified
        self._count = 0
        self._after_reasoning: dict[str, str] = {}
        """Of items that must follow a reasoning item: the ids of both."""
        self._cache = PromptCache()

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if path == "/chat/completions":
            return self._of_chat(body)
        valid_responses_body(json.dumps(body).encode())
        for name in _SAMPLING:
            if name in body:
                return invalid_request(
                    f"Unsupported parameter: '{name}' is not supported with this model.",
                    param=name,
                    code="unsupported_parameter",
                )
        written = body.get("text", {}).get("format", {})
        if written.get("strict") and not is_closed(written["schema"]):
            return invalid_request(
                f"Invalid schema for response_format '{written['name']}': In context=(), 'additionalProperties' is"
                " required to be supplied and to be false.",
                param="text.format.schema",
                code="invalid_json_schema",
            )
        if body["model"] in self._plain and written:
            return invalid_request(
                "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.",
                param="text.format",
            )
        if body["model"] in self._plain and "reasoning.encrypted_content" in body.get("include", ()):
            return invalid_request("Encrypted content is not supported with this model.", param="include")
        if body["model"] in self._plain and "summary" in body.get("reasoning", {}):
            return invalid_request(
                "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
                param="reasoning.summary",
                code="unsupported_parameter",
            )
        if self._unverified and "summary" in body.get("reasoning", {}):
            return invalid_request(
                "Your organization must be verified to generate reasoning summaries. Please go to the settings of your"
                " organization and click on Verify Organization.",
                param="reasoning.summary",
                code="unsupported_value",
            )
        items = body["input"]
        faults = chain(self._ids(items), self._encryption(items, key), self._neighbours(items), self._pairs(items))
        return next(faults, None)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        items = list(self._items(body, said, key))
        whole = {
            "id": self._id("resp"),
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "tools": body.get("tools", []),
            "output": items,
            "usage": self._usage(body, items),
        }
        return Answer(whole=whole, events=tuple(_numbered(_events(whole, said))), named=True)

    @staticmethod
    def _of_chat(body: Json) -> Refusal | None:
        if "tools" not in body:
            return invalid_request("This test answers over /v1/responses only.", param="model")
        return invalid_request(
            f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions."
            " Please use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )

    def _ids(self, items: list[Json]) -> Iterator[Refusal]:
        seen: set[str] = set()
        for index, item in enumerate(items):
            item_id = item.get("id")
            if item_id is None:
                continue
            prefix = _PREFIXES.get(item["type"], "")
            if not item_id.startswith(prefix):
                yield invalid_request(
                    f"Invalid 'input[{index}].id': '{item_id}'. Expected an ID that begins with '{prefix}'.",
                    param=f"input[{index}].id",
                    code="invalid_value",
                )
            if item_id in seen:
                yield invalid_request(
                    f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
                )
            seen.add(item_id)

    def _encryption(self, items: list[Json], key: str) -> Iterator[Refusal]:
        for item in items:
            if item.get("type") != "reasoning":
                continue
            content = item.get("encrypted_content")
            if content is None:
                yield invalid_request(
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try"
                    " again with `store` set to true, or remove this item from your input.",
                    status=404,
                )
            elif content != _encrypted(item["id"], key):
                yield invalid_request(
                    f"The encrypted content {content[:4]}...{content[-4:]} could not be verified. Reason: Encrypted"
                    " content could not be decrypted or parsed.",
                    param=None,
                    code="invalid_encrypted_content",
                )

    def _neighbours(self, items: list[Json]) -> Iterator[Refusal]:
        ids = [item.get("id") for item in items]
        for item in items:
            needed = self._after_reasoning.get(item.get("id", ""))
            if needed is not None and needed not in ids[: items.index(item)]:
                yield invalid_request(
                    f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' item:"
                    f" '{needed}'."
                )
        for item, following in zip(items, [*items[1:], {}], strict=True):
            if item.get("type") == "reasoning" and self._after_reasoning.get(following.get("id", "")) != item["id"]:
                yield invalid_request(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
                )

    def _pairs(self, items: list[Json]) -> Iterator[Refusal]:
        called = {item["call_id"] for item in items if item.get("type") == "function_call"}
        answered = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
        for call_id in answered - called:
            yield invalid_request(f"No tool call found for function call output with call_id {call_id}.")
        for call_id in called - answered:
            yield invalid_request(f"No tool output found for function call {call_id}.")

    def _items(self, body: Json, said: Said, key: str) -> Iterator[Json]:
        reasoning: str | None = None
        if body["model"] not in self._plain:
            reasoning = self._id("rs")
            summary = [{"type": "summary_text", "text": said.reasoning}] if said.reasoning else []
            item: Json = {"id": reasoning, "type": "reasoning", "summary": summary}
            if "reasoning.encrypted_content" in body.get("include", ()):
                item["encrypted_content"] = _encrypted(reasoning, key)
            yield item
        followers: list[Json] = []
        if said.text:
            part = {"type": "output_text", "text": said.text, "annotations": []}
            message_id = self._id("msg")
            followers.append(
                {"id": message_id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}
            )
        for name, arguments in said.calls:
            followers.append(
                {
                    "id": self._id("fc"),
                    "type": "function_call",
                    "status": "completed",
                    "call_id": self._id("call"),
                    "name": name,
                    "arguments": json.dumps(arguments),
                }
            )
        for follower in followers:
            if reasoning is not None:
                self._after_reasoning[follower["id"]] = reasoning
            yield follower

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:032x}"

    def _usage(self, body: Json, items: list[Json]) -> Json:
        prompt, cached = self._cache.count(body.get("instructions"), body.get("tools"), body["input"])
        output = len(json.dumps(items)) // 4
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": output // 2},
            "total_tokens": prompt + output,
        }


def _encrypted(reasoning_id: str, key: str) -> str:
    return f"gAAA{hashlib.sha256(f'{reasoning_id} {key}'.encode()).hexdigest() * 4}=="


def _numbered(events: Iterator[Json]) -> Iterator[Json]:
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _events(whole: Json, said: Said) -> Iterator[Json]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        added = {**item, "status": "in_progress"}
        if item["type"] == "reasoning":
            # Not the content that is to be sent back.
            yield {
                "type": "response.output_item.added",
                "output_index": index,
                "item": {**item, "summary": []}
                | ({"encrypted_content": "gAAA-provisional"} if "encrypted_content" in item else {}),
            }
            for number, part in enumerate(item["summary"]):
                numbers = {**place, "summary_index": number}
                yield {"type": "response.reasoning_summary_part.added", **numbers, "part": {**part, "text": ""}}
                for piece in pieces(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", **numbers, "delta": piece}
                yield {"type": "response.reasoning_summary_text.done", **numbers, "text": part["text"]}
        elif item["type"] == "message":
            yield {"type": "response.output_item.added", "output_index": index, "item": {**added, "content": []}}
            for piece in pieces(said.text):
                yield {
                    "type": "response.output_text.delta",
                    **place,
                    "content_index": 0,
                    "delta": piece,
                    "logprobs": [],
                }
        else:
            yield {"type": "response.output_item.added", "output_index": index, "item": {**added, "arguments": ""}}
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}
