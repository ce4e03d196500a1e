"""`generateContent` as Gemini 3 has it, at the Gemini API and on Vertex AI: what it refuses, in its
words."""

import base64
import hashlib
import json
from collections.abc import Iterator
from itertools import chain

from tests.integration.llm.strict.provider import Answer, Json, PromptCache, Refusal, Said, pieces

KEY = "gemini-key"
_FIELDS = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "labels"}
)
_GENERATION = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "thinkingConfig"),
        *("responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "candidateCount"),
    }
)
_DUMMY = base64.b64encode(b"skip_thought_signature_validator").decode()
"""Taken with calls that another model made."""


def invalid_argument(message: str) -> Refusal:
    return Refusal(status=400, body={"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})


class StrictGenerateContent:
    """Wants each signature back in its part, unchanged, with the key that it was sent to. `place`
    is the path before the model, `key` what requests must have."""

    key_header: str | None = "x-goog-api-key"

    def __init__(
        self, *, place: str = "/v1beta/models", key: str = KEY, key_header: str | None = "x-goog-api-key"
    ) -> None:
        self.paths = (f"{place}/{{model}}:streamGenerateContent",)
        self.key_header = key_header
        self._key = key
        self._count = 0
        self._cache = PromptCache()
        self._signed: dict[str, str] = {}
        """Signatures by the ids of calls."""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if key != self._key:
            error = {
                "code": 401,
                "message": "Request had invalid authentication credentials.",
                "status": "UNAUTHENTICATED",
            }
            return Refusal(status=401, body={"error": error})
        return next(chain(self._unknown(body), self._turns(body["contents"]), self._signatures(body["contents"])), None)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        parts: list[Json] = [{"text": said.reasoning or "Let me think.", "thought": True}]
        signature = self._signature()
        if said.text:
            parts.append({"text": said.text} | ({} if said.calls else {"thoughtSignature": signature}))
        for index, (name, arguments) in enumerate(said.calls):
            call_id = f"call-{self._next()}"
            call: Json = {"name": name, "args": arguments, "id": call_id}
            self._signed[call_id] = signature if index == 0 else ""
            parts.append({"functionCall": call} | ({"thoughtSignature": signature} if index == 0 else {}))
        prompt, cached = self._cache.count(body.get("systemInstruction"), body.get("tools"), body["contents"])
        count = len(json.dumps(parts)) // 4
        usage = {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": cached,
            "candidatesTokenCount": count,
            "thoughtsTokenCount": 5,
            "totalTokenCount": prompt + count + 5,
        }
        whole = _response(parts, usage, "STOP")
        return Answer(whole=whole, events=tuple(_events(parts, usage)))

    def _unknown(self, body: Json) -> Iterator[Refusal]:
        generation = body.get("generationConfig", {})
        for name in sorted((set(body) - _FIELDS) | (set(generation) - _GENERATION)):
            yield invalid_argument(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')

    def _turns(self, contents: list[Json]) -> Iterator[Refusal]:
        for index, turn in enumerate(contents):
            if not turn["parts"]:
                yield invalid_argument("Unable to submit request because it must include at least one parts field")
            calls = [part["functionCall"]["name"] for part in turn["parts"] if "functionCall" in part]
            if not calls:
                continue
            following = contents[index + 1]["parts"] if index + 1 < len(contents) else []
            answered = [part["functionResponse"]["name"] for part in following if "functionResponse" in part]
            if calls != answered:
                yield invalid_argument(
                    "Please ensure that the number of function response parts is equal to the number of function call parts"
                    " of the function call turn."
                )

    def _signatures(self, contents: list[Json]) -> Iterator[Refusal]:
        for turn in contents:
            calls = [part for part in turn["parts"] if "functionCall" in part]
            for index, part in enumerate(calls):
                signature = part.get("thoughtSignature", "")
                own = self._signed.get(part["functionCall"].get("id", ""))
                if index == 0 and not signature:
                    yield invalid_argument(
                        "Function call is missing a thought_signature in functionCall parts. This is required for tools to"
                        f" work correctly. Additional data, function call `{part['functionCall']['name']}`."
                    )
                elif signature != (_DUMMY if own is None and index == 0 else own or ""):
                    yield invalid_argument("Corrupted thought signature.")

    def _signature(self) -> str:
        """Of hexadecimal digits, whose encodings in both alphabets of Base64 are the same."""
        return base64.b64encode(hashlib.sha256(f"{self._key} {self._next()}".encode()).hexdigest().encode()).decode()

    def _next(self) -> int:
        self._count += 1
        return self._count


def _response(parts: list[Json], usage: Json, finish: str | None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3-pro", "responseId": "r-1"}


def _events(parts: list[Json], usage: Json) -> Iterator[Json]:
    for part in parts:
        if "functionCall" in part:
            yield _response([part], usage, None)
            continue
        for piece in pieces(part["text"]):
            yield _response([{"text": piece} | ({"thought": True} if part.get("thought") else {})], usage, None)
        if "thoughtSignature" in part:
            yield _response([{"text": "", "thoughtSignature": part["thoughtSignature"]}], usage, None)
    yield _response([{"text": ""}], usage, "STOP")
