"""Chat completions of vendors that differ from OpenAI in more than reasoning: what each refuses, in
its words."""

import re
from collections.abc import Iterator

from tests.integration.llm.strict.chat import THOUGHT, StrictChat, StrictOpenRouter, bad_request
from tests.integration.llm.strict.provider import Answer, Json, Refusal, Said

_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_MISTRAL_FIELDS = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "stream", "temperature", "top_p"}
)
_MISTRAL_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "prefix"})
AZURE_KEY = "azure-key"


class StrictMistral(StrictChat):
    """Takes no field that it does not know, and no id of a call that it could not have given:
    https://github.com/mistralai/mistral-vibe/issues/1075,
    https://github.com/charmbracelet/crush/issues/1590"""

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
    """Takes the key in the header `api-key`:
    https://learn.microsoft.com/azure/ai-foundry/openai/latest"""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if key != AZURE_KEY:
            message = "Access denied due to invalid subscription key or wrong API endpoint."
            return Refusal(status=401, body={"error": {"code": "401", "message": message}})
        return super().refusal(path, body, key)


_COMPLETION_TOKENS = "max_completion_tokens"


class StrictSnowflake(StrictOpenRouter):
    """Cortex: replies of Claude have no finish reason, and their details of the reasoning go back;
    the effort is an object, with temperature 1; only models of Anthropic and OpenAI take tools. The
    words are ours: https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-rest-api"""

    _taken = frozenset({"model", "messages", "tools", "temperature", _COMPLETION_TOKENS, "stream", "stream_options"})

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if "reasoning" in body and body.get("temperature") != 1:
            return bad_request("temperature must be 1 when reasoning is enabled")
        if "tools" in body and not body["model"].startswith(("claude", "openai-")):
            return bad_request(f"tools are not supported for model {body['model']}")
        return super().refusal(path, {name: value for name, value in body.items() if name != "reasoning"}, key)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        answer = super().answer(body, said, key)
        for choice in (choice for part in (answer.whole, *answer.events) for choice in part["choices"]):
            choice["finish_reason"] = ""
        return answer


class StrictCopilot(StrictChat):
    """Refuses `max_tokens` without naming it, shows reasoning in `reasoning_text`, pads its pieces,
    and leaves out what OpenAI requires of a reply."""

    _taken = frozenset({"model", "messages", "tools", _COMPLETION_TOKENS, "stream", "stream_options"})

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if "max_tokens" in body or any("padding" in message for message in body["messages"]):
            return Refusal(status=400, body={"message": "Bad Request"})
        return super().refusal(path, body, key)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        answer = super().answer(body, said, key)
        for part in (answer.whole, *answer.events):
            part.pop("object")
            for choice in part["choices"]:
                choice.pop("index")
                choice.get("delta", choice.get("message"))["padding"] = "abc"
        return answer

    def _own_of_message(self, said: Said) -> Json:
        return {"reasoning_text": said.reasoning or THOUGHT, "reasoning_opaque": "b3BhcXVl"}

    def _pieces(self, message: Json) -> Iterator[Json]:
        yield {"reasoning_text": message["reasoning_text"], "content": None}
        yield {"reasoning_opaque": message["reasoning_opaque"]}
        yield from super()._pieces(message)


class StrictMeta(StrictChat):
    """Takes no `tool_choice` but `auto`. The words are ours: https://dev.meta.ai/docs/models"""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        if body.get("tool_choice", "auto") != "auto":
            return bad_request("tool_choice: only 'auto' is supported", param="tool_choice")
        return super().refusal(path, body, key)


class StrictAlibaba(StrictChat):
    """Takes audio as URLs only, and no files:
    https://www.alibabacloud.com/help/en/model-studio/qwen-omni"""

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        for part in _parts(body):
            if part["type"] == "file":
                return bad_request("Unexpected item type in content.")
            if part["type"] == "input_audio" and not part["input_audio"]["data"].startswith(("data:", "https://")):
                return bad_request(
                    "<400> InternalError.Algo.InvalidParameter: The provided URL does not appear to be valid. Ensure it is"
                    " correctly formatted."
                )
        return super().refusal(path, body, key)


def _parts(body: Json) -> Iterator[Json]:
    for message in body["messages"]:
        yield from message["content"] if isinstance(message["content"], list) else ()


def _extra_forbidden(place: list[str | int]) -> Refusal:
    fault = {"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted"}
    return Refusal(status=422, body={"error": {"message": f"{fault}", "type": "invalid_request_error", "code": "3001"}})
