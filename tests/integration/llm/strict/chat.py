"""Chat completions of vendors whose thinking models need back what they said: what each refuses, in
its words where they are public."""

import hashlib
import json
from collections.abc import Iterator
from itertools import chain

from tests.integration.llm.strict.provider import Answer, Json, PromptCache, Refusal, Said, pieces
from tests.unit.llm.sdk_types import OWN_FIELDS, valid_chat_body

_TAKEN = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "stream", "stream_options"),
        *("reasoning_effort", "temperature", "top_p", "stop", "seed"),
    }
)
THOUGHT = "I think about it."


def bad_request(message: str, **more: str | None) -> Refusal:
    return Refusal(status=400, body={"error": {"message": message, "type": "invalid_request_error", **more}})


class StrictChat:
    """What all of them refuse: bodies that OpenAI's types do not take, parameters that were not
    set, calls without results, and messages of the vendor's own model whose fields were altered."""

    paths = ("/chat/completions",)
    _takes_schemas = False
    _taken = _TAKEN

    def __init__(self) -> None:
        self._count = 0
        self._cache = PromptCache()
        self._said: dict[str, Json] = {}
        """Messages by what identifies them: the id of their first call, or their text."""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        valid_chat_body(json.dumps(body).encode())
        messages = body["messages"]
        faults = chain(self._parameters(body), self._pairs(messages), self._altered(messages), self._missing(body))
        return next(faults, None)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        message: Json = {"role": "assistant", "content": said.text or None, **self._own_of_message(said)}
        if said.calls:
            message["tool_calls"] = [
                {
                    "id": self._id(name),
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                    **self._own_of_call(index),
                }
                for index, (name, arguments) in enumerate(said.calls)
            ]
        self._said[_identity(message)] = message
        finish = "tool_calls" if said.calls else "stop"
        usage = self._usage(body, message)
        whole = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        }
        deltas = [{"role": "assistant", "content": ""}, *self._pieces(message), {}]
        events: list[Json] = [
            {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            for delta in deltas
        ]
        events[-1]["choices"][0]["finish_reason"] = finish
        events.append({"object": "chat.completion.chunk", "choices": [], "usage": usage})
        return Answer(whole=whole, events=tuple(events), end=b"data: [DONE]\n\n")

    def _parameters(self, body: Json) -> Iterator[Refusal]:
        if "response_format" in body and not self._takes_schemas:
            yield bad_request("This response_format type is unavailable now", param=None, code="invalid_request_error")
        for name in sorted(set(body) - self._taken - {"response_format"}):
            yield bad_request(f"Unsupported parameter: '{name}' is not supported with this model.", param=name)

    def _pairs(self, messages: list[Json]) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            called = [call["id"] for call in message.get("tool_calls", ())]
            results = messages[index + 1 : index + 1 + len(called)]
            if called != [result.get("tool_call_id") for result in results]:
                yield bad_request(
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                    " 'tool_call_id'."
                )

    def _altered(self, messages: list[Json]) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            known = self._said.get(_identity(message)) if message["role"] == "assistant" else None
            if known is None:
                continue
            for name in OWN_FIELDS & set(message):
                if message[name] != known.get(name):
                    yield bad_request(f"messages.{index}.{name} was altered.")

    def _missing(self, body: Json) -> Iterator[Refusal]:
        """What this vendor refuses besides."""
        yield from ()

    def _own_of_message(self, said: Said) -> Json:
        return {"reasoning_content": said.reasoning or THOUGHT}

    def _own_of_call(self, index: int) -> Json:
        return {}

    def _pieces(self, message: Json) -> Iterator[Json]:
        for piece in pieces(message.get("reasoning_content", "")):
            yield {"reasoning_content": piece, "content": None}
        for piece in pieces(message["content"] or ""):
            yield {"content": piece}
        for index, call in enumerate(message.get("tool_calls", ())):
            start = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield {"tool_calls": [start]}
            for piece in pieces(call["function"]["arguments"]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _usage(self, body: Json, message: Json) -> Json:
        prompt, cached = self._cache.count(body.get("tools"), body["messages"])
        output = len(json.dumps(message)) // 4
        return {"prompt_tokens": prompt, "total_tokens": prompt + output} | self._counted(cached, output)

    def _counted(self, cached: int, output: int) -> Json:
        return {
            "completion_tokens": output,
            "completion_tokens_details": {"reasoning_tokens": output // 2},
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    def _id(self, name: str) -> str:
        self._count += 1
        return f"call_{self._count:024x}"


class StrictDeepSeek(StrictChat):
    """With tools, all messages of the model need their reasoning, those of earlier questions too:
    https://api-docs.deepseek.com/guides/thinking_mode"""

    def _missing(self, body: Json) -> Iterator[Refusal]:
        for message in body["messages"]:
            if "tools" in body and message["role"] == "assistant" and not message.get("reasoning_content"):
                yield bad_request(
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                    param=None,
                    code="invalid_request_error",
                )

    def _counted(self, cached: int, output: int) -> Json:
        return {
            "completion_tokens": output,
            "completion_tokens_details": {"reasoning_tokens": output // 2},
            "prompt_cache_hit_tokens": cached,
        }


class StrictKimi(StrictChat):
    """All messages with calls need their reasoning:
    https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model"""

    def _missing(self, body: Json) -> Iterator[Refusal]:
        for index, message in enumerate(body["messages"]):
            if "tool_calls" in message and not message.get("reasoning_content"):
                yield bad_request(
                    f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
                )

    def _counted(self, cached: int, output: int) -> Json:
        return {"completion_tokens": output, "cached_tokens": cached}

    def _id(self, name: str) -> str:
        self._count += 1
        return f"functions.{name}:{self._count - 1}"


class StrictToolLoop(StrictChat):
    """A vendor that needs the reasoning after the last message of the user, and refuses it before
    (GLM, Qwen). The words are ours."""

    def _missing(self, body: Json) -> Iterator[Refusal]:
        start = _loop_start(body["messages"])
        for index, message in enumerate(body["messages"]):
            if index < start and message.get("reasoning_content"):
                yield bad_request(f"messages.{index}: reasoning_content is not supported before the last user message")
            if index >= start and "tool_calls" in message and not message.get("reasoning_content"):
                yield bad_request(f"messages.{index}: reasoning_content is required in a tool call turn")


class StrictGemini(StrictChat):
    """The first call of each step of the current turn needs its signature, or the documented
    placeholder for calls of other models:
    https://ai.google.dev/gemini-api/docs/thought-signatures"""

    _takes_schemas = True

    def _missing(self, body: Json) -> Iterator[Refusal]:
        start = _loop_start(body["messages"])
        for index, message in enumerate(body["messages"]):
            if index < start or "tool_calls" not in message:
                continue
            first = message["tool_calls"][0]
            given = first.get("extra_content", {}).get("google", {}).get("thought_signature")
            known = self._said.get(first["id"])
            if given is None:
                yield _gemini_refusal(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to"
                    " work correctly, and missing thought_signature may lead to degraded model performance. Additional"
                    f" data, function call `default_api:{first['function']['name']}` , position {index}. Please refer to"
                    " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
                )
            elif given != "skip_thought_signature_validator" if known is None else first != known["tool_calls"][0]:
                yield _gemini_refusal("Corrupted thought signature.")

    def _own_of_message(self, said: Said) -> Json:
        return {} if said.calls else {"extra_content": {"google": {"thought_signature": _signed(said.text)}}}

    def _own_of_call(self, index: int) -> Json:
        return {} if index else {"extra_content": {"google": {"thought_signature": _signed(str(self._count))}}}

    def _pieces(self, message: Json) -> Iterator[Json]:
        yield from super()._pieces(message)
        if "extra_content" in message:
            yield {"content": "", "extra_content": message["extra_content"]}

    def _counted(self, cached: int, output: int) -> Json:
        return {"completion_tokens": output // 2, "prompt_tokens_details": {"cached_tokens": cached}}


class StrictOpenRouter(StrictChat):
    """Details of the reasoning go back whole and in their order:
    https://openrouter.ai/docs/use-cases/reasoning-tokens"""

    def _missing(self, body: Json) -> Iterator[Refusal]:
        for message in body["messages"]:
            known = self._said.get(_identity(message)) if message["role"] == "assistant" else None
            if known is not None and message.get("reasoning_details") != known["reasoning_details"]:
                raw = "messages.1.content.0: Invalid `signature` in `thinking` block"
                error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}
                yield Refusal(status=400, body={"error": error})

    def _own_of_message(self, said: Said) -> Json:
        thought = said.reasoning or THOUGHT
        text = {"type": "reasoning.text", "text": thought, "format": "anthropic-claude-v1", "index": 0}
        hidden = {"type": "reasoning.encrypted", "data": _signed("hidden"), "format": "anthropic-claude-v1", "index": 1}
        return {"reasoning": thought, "reasoning_details": [{**text, "signature": _signed(thought)}, hidden]}

    def _pieces(self, message: Json) -> Iterator[Json]:
        text, hidden = message["reasoning_details"]
        plain = {name: value for name, value in text.items() if name != "signature"}
        for piece in pieces(text["text"]):
            yield {"content": "", "reasoning": piece, "reasoning_details": [{**plain, "text": piece}]}
        signed = {name: value for name, value in text.items() if name != "text"}
        yield {"content": "", "reasoning": None, "reasoning_details": [signed]}
        yield {"content": "", "reasoning": None, "reasoning_details": [hidden]}
        yield from super()._pieces(message)


def _identity(message: Json) -> str:
    calls = message.get("tool_calls")
    return str(calls[0]["id"] if calls else message["content"])


def _loop_start(messages: list[Json]) -> int:
    """The place after the last message of the user."""
    return max((index for index, message in enumerate(messages) if message["role"] == "user"), default=-1) + 1


def _gemini_refusal(message: str) -> Refusal:
    return Refusal(status=400, body=[{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}])


def _signed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest() * 4
