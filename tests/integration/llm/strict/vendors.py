"""Chat completions of vendors that differ from OpenAI in more than reasoning: what each refuses, in its words."""

import re
from collections.abc import Iterator

from tests.integration.llm.strict.chat import StrictChat
from tests.integration.llm.strict.provider import Json, Refusal, Said

_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_MISTRAL_FIELDS = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "stream", "temperature", "top_p"}
)
_MISTRAL_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "prefix"})
AZURE_KEY = "azure-key"


class StrictMistral(StrictChat):
    """Takes no field that it does not know, and no id of a call that it could not have given:
    https://github.com/mistralai/mistral-vibe/issues/1075, https://github.com/charmbracelet/crush/issues/1590"""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        return next(self._forbidden(body), None) or super().refusal(path, body, key)

    def _forbidden(self, body: Json) -> Iterator[Refusal]:
        for name in sorted(set(body) - _MISTRAL_FIELDS):
            yield _extra_forbidden(["body", name])
        for index, message in enumerate(body["messages"]):
            for name in sorted(set(message) - _MISTRAL_MESSAGE):
                yield _extra_forbidden(["body", "messages", index, message["role"], name])
            ids = [call["id"] for call in message.get("tool_calls", ())] + [message.get("tool_call_id", "x" * 9)]
            for call_id in ids:
                if not _MISTRAL_ID.fullmatch(call_id):
                    yield Refusal(
                        status=400,
                        body={
                            "object": "error",
                            "error": {
                                "message": f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.",
                                "type": "invalid_function_call",
                                "code": "3280",
                            },
                        },
                    )

    def _own_of_message(self, said: Said) -> Json:
        return {}

    def _id(self, name: str) -> str:
        self._count += 1
        return f"Mi{self._count:07x}"


class StrictAzure(StrictChat):
    """Takes the key in the header `api-key`: https://learn.microsoft.com/azure/ai-foundry/openai/latest"""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if key != AZURE_KEY:
            message = "Access denied due to invalid subscription key or wrong API endpoint."
            return Refusal(status=401, body={"error": {"code": "401", "message": message}})
        return super().refusal(path, body, key)


def _extra_forbidden(place: list[str | int]) -> Refusal:
    fault = {"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted"}
    return Refusal(status=422, body={"error": {"message": f"{fault}", "type": "invalid_request_error", "code": "3001"}})
