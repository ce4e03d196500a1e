"""Converse as Bedrock has it for a Claude that thinks with a budget: what it refuses, in its
words."""

import base64
import hashlib
import hmac
import json
import struct
import zlib
from collections.abc import Iterator
from itertools import chain
from urllib.parse import quote

from aiohttp import web

from tests.integration.llm.strict.provider import Answer, Json, PromptCache, Refusal, Said, pieces

KEY_ID, SECRET, TOKEN, REGION = (
    "TESTKEYTESTKEYTEST01",
    "aSecret/of+the+tests/",
    "sessionTokenOfTheTests==",
    "eu-central-1",
)
API_KEY = "bedrock-api-key-of-tests"
_FIELDS = frozenset(
    {"messages", "system", "inferenceConfig", "toolConfig", "additionalModelRequestFields", "outputConfig"}
)
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})


def validation(message: str) -> Refusal:
    return Refusal(
        status=400,
        body={"message": message},
        headers={"x-amzn-errortype": "ValidationException:http://internal.amazon.com/"},
    )


class StrictConverse:
    """Checks the signature of requests, pairs calls with results, and wants thinking back as it
    was."""

    paths = ("/model/{model}/converse-stream",)

    def __init__(self, *, role_token: str | None = None) -> None:
        self._count = 0
        self._cache = PromptCache()
        self._role_token = role_token

    def key_of(self, request: web.Request, raw: bytes) -> str:
        """What of the request proves its sender."""
        given = request.headers.get("authorization", "")
        if given == f"Bearer {API_KEY}":
            return API_KEY
        wanted = _authorization(request, raw)
        return KEY_ID if given == wanted and request.headers.get("x-amz-security-token") == self._role_token else given

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if key not in {KEY_ID, API_KEY}:
            message = "The request signature we calculated does not match the signature you provided."
            headers = {"x-amzn-errortype": "InvalidSignatureException"}
            return Refusal(status=403, body={"message": message}, headers=headers)
        messages = body["messages"]
        return next(chain(self._parameters(body), self._pairs(messages), self._thinking(body, messages)), None)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        blocks: list[Json] = []
        if "thinking" in body.get("additionalModelRequestFields", {}):
            text = said.reasoning or "Let me think."
            blocks.append({"reasoningContent": {"reasoningText": {"text": text, "signature": _signed(text)}}})
        if said.text:
            blocks.append({"text": said.text})
        for name, arguments in said.calls:
            self._count += 1
            blocks.append({"toolUse": {"toolUseId": f"tooluse_{self._count}", "name": name, "input": arguments}})
        prompt, cached = self._cache.count(body.get("toolConfig"), body.get("system"), _unmarked(body["messages"]))
        count = len(json.dumps(blocks)) // 4
        usage = {
            "inputTokens": prompt - cached,
            "outputTokens": count,
            "totalTokens": prompt + count,
            "cacheReadInputTokens": cached,
            "cacheWriteInputTokens": 0,
        }
        whole = {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": "tool_use" if said.calls else "end_turn",
            "usage": usage,
            "metrics": {"latencyMs": 1},
        }
        return Answer(whole=whole, events=tuple(_events(whole)), encode=_encoded)

    def _parameters(self, body: Json) -> Iterator[Refusal]:
        inference = body.get("inferenceConfig", {})
        for name in sorted((set(body) - _FIELDS) | (set(inference) - _INFERENCE)):
            yield validation(f"The model returned the following errors: {name}: Extra inputs are not permitted")
        thinking = body.get("additionalModelRequestFields", {}).get("thinking", {})
        if thinking.get("type") == "enabled":
            if inference.get("temperature", 1) != 1:
                yield validation(
                    "The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled."
                )
            if thinking["budget_tokens"] >= inference.get("maxTokens", 8_192):
                yield validation(
                    "The model returned the following errors: `max_tokens` must be greater than `thinking.budget_tokens`."
                )
        for index, message in enumerate(body["messages"]):
            for place, block in enumerate(message["content"]):
                if "text" in block and not block["text"].strip():
                    yield validation(
                        f"The text field in the ContentBlock object at messages.{index}.content.{place} is blank. Add text to the"
                        " text field, and try again."
                    )
                if not body.get("toolConfig") and ("toolUse" in block or "toolResult" in block):
                    yield validation(
                        "The toolConfig field must be defined when using toolUse and toolResult content blocks."
                    )

    def _pairs(self, messages: list[Json]) -> Iterator[Refusal]:
        for index, message in enumerate(messages):
            if message["role"] != ("user", "assistant")[index % 2]:
                yield validation("A conversation must alternate between user and assistant roles.")
            called = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
            following = messages[index + 1]["content"] if index + 1 < len(messages) else []
            answered = {block["toolResult"]["toolUseId"] for block in following if "toolResult" in block}
            if missing := [call for call in called if call not in answered]:
                yield validation(
                    f"Expected toolResult blocks at messages.{index + 1}.content for the following Ids: {', '.join(missing)}"
                )

    def _thinking(self, body: Json, messages: list[Json]) -> Iterator[Refusal]:
        budget = "budget_tokens" in body.get("additionalModelRequestFields", {}).get("thinking", {})
        for index, message in enumerate(messages):
            for place, block in enumerate(message["content"]):
                told = block.get("reasoningContent", {}).get("reasoningText")
                if told is not None and told.get("signature") != _signed(told["text"]):
                    yield validation(
                        f"The model returned the following errors: messages.{index}.content.{place}: Invalid `signature` in"
                        " `thinking` block"
                    )
            started = "reasoningContent" in message["content"][0]
            if budget and not started and message["role"] == "assistant" and index > _last_question(messages):
                yield validation(
                    f"The model returned the following errors: messages.{index}.content.0.type: Expected `thinking` or"
                    " `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message"
                    " must start with a thinking block."
                )


def _last_question(messages: list[Json]) -> int:
    return max(
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and not any("toolResult" in block for block in message["content"])
    )


def _unmarked(messages: list[Json]) -> list[Json]:
    """Cache points move; they are not part of the prompt."""
    return [
        {**message, "content": [block for block in message["content"] if "cachePoint" not in block]}
        for message in messages
    ]


def _signed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _events(whole: Json) -> Iterator[Json]:
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(whole["output"]["message"]["content"]):
        yield from _deltas(block, index)
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    yield {"messageStop": {"stopReason": whole["stopReason"]}}
    yield {"metadata": {"usage": whole["usage"], "metrics": whole["metrics"]}}


def _deltas(block: Json, index: int) -> Iterator[Json]:
    def delta(part: Json) -> Json:
        return {"contentBlockDelta": {"delta": part, "contentBlockIndex": index}}

    if "text" in block:
        yield from (delta({"text": piece}) for piece in pieces(block["text"]))
    elif "toolUse" in block:
        use = block["toolUse"]
        start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
        yield {"contentBlockStart": {"start": start, "contentBlockIndex": index}}
        yield from (delta({"toolUse": {"input": piece}}) for piece in pieces(json.dumps(use["input"])))
    else:
        told = block["reasoningContent"]["reasoningText"]
        yield from (delta({"reasoningContent": {"text": piece}}) for piece in pieces(told["text"]))
        yield delta({"reasoningContent": {"signature": told["signature"]}})


def _encoded(event: Json) -> bytes:
    """A message of `application/vnd.amazon.eventstream`:
    https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html"""
    ((name, content),) = event.items()
    fields = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack(">B", len(key)) + key.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for key, value in fields.items()
    )
    payload = json.dumps(content).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _authorization(request: web.Request, raw: bytes) -> str:
    """The header that a request with our key has (AWS Signature Version 4), by the path as it was
    sent."""
    given = request.headers.get("authorization", "")
    signed = given.partition("SignedHeaders=")[2].partition(",")[0]
    moment = request.headers.get("x-amz-date", "")
    scope = f"{moment[:8]}/{REGION}/bedrock/aws4_request"
    headers = "".join(f"{name}:{request.headers.get(name, '').strip()}\n" for name in signed.split(";"))
    path = quote(request.raw_path.partition("?")[0], safe="/-_.~")
    asked = "\n".join([request.method, path, "", headers, signed, hashlib.sha256(raw).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(asked.encode()).hexdigest()])
    key = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={signed}, Signature={signature}"
