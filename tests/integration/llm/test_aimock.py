"""Both wires against aimock (npm), which plays fixtures over the providers' own protocols."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from application.models.ports import LanguageModel, ModelError
from domain.json_value import JsonValue
from domain.model_providers.provider import ProviderKind
from domain.runs.usage import ModelUsage
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.builders import a_tool
from tests.unit.llm.model_requests import (
    PIXEL,
    a_request,
    a_result,
    a_tool_message,
    a_use,
    a_user_message,
    all_events,
    an_assistant_message,
    reply_of,
)

WIRES = (ProviderKind.OPENAI, ProviderKind.ANTHROPIC)
AIMOCK = Path(__file__).parents[2] / "node" / "node_modules" / ".bin" / "llmock"
ANSWER = "In Paris it is sunny, 21 °C, and noon. ☀️"
USAGE: JsonValue = {"prompt_tokens": 300, "completion_tokens": 20, "input_tokens": 300, "output_tokens": 20}
FIXTURES: list[JsonValue] = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [
                {"name": "mcp__weather__now", "arguments": json.dumps({"place": "Paris", "days": [1, 2]})},
                {"name": "mcp__clock__now", "arguments": "{}"},
            ],
        },
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": ANSWER, "usage": USAGE}},
    {"match": {"userMessage": "cut"}, "response": {"content": "This goes on and", "finishReason": "length"}},
    {
        "match": {"userMessage": "act first"},
        "response": {
            "blocks": [
                {"type": "toolCall", "name": "mcp__clock__now", "arguments": "{}"},
                {"type": "text", "text": "Looking at the clock."},
            ]
        },
    },
]


class Aimock:
    def __init__(self, url: str, http: AiohttpProviders) -> None:
        self._url = url
        self._http = http

    def model(self, kind: ProviderKind) -> LanguageModel:
        base_url = f"{self._url}/v1" if kind is ProviderKind.OPENAI else self._url
        provider = ProviderConfig(name=kind.value, kind=kind, base_url=base_url, api_key="any")
        return ProviderModels(http=self._http, guarded_http=self._http, outbound=EgressPolicy()).open(provider)


@pytest.fixture(scope="module")
def aimock_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = shutil.which("node")
    if node is None or not AIMOCK.exists():
        pytest.skip("needs `make node`")
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}))
    command = [node, str(AIMOCK), "-p", "0", "-f", str(fixtures), "--strict", "--chunk-size", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(line.rpartition(" ")[2].strip() for line in process.stdout if "listening on" in line)
        finally:
            process.kill()


@pytest.fixture
def aimock(aimock_url: str, http: AiohttpProviders) -> Aimock:
    return Aimock(aimock_url, http)


@pytest.mark.parametrize("kind", WIRES)
async def test_a_conversation_with_parallel_calls(aimock: Aimock, kind: ProviderKind) -> None:
    model = aimock.model(kind)
    tools = (a_tool("mcp__weather__now"), a_tool("mcp__clock__now", parameters={"type": "object"}))
    question = a_user_message("What weather is it in Paris?")
    asked = await reply_of(model.stream(a_request(f"{kind}:test", messages=(question,), tools=tools)))
    assert (asked.text, asked.finish_reason) == ("Let me look.", "tool_calls")
    assert [(call.name, call.arguments) for call in asked.calls] == [
        ("mcp__weather__now", {"place": "Paris", "days": [1, 2]}),
        ("mcp__clock__now", {}),
    ]
    uses = [a_use(index, name=call.name, params=call.arguments) for index, call in enumerate(asked.calls)]
    # On the other wire images follow as a message of the user's, which aimock takes for a new
    # question.
    images = (PIXEL,) if kind is ProviderKind.ANTHROPIC else ()
    results = [a_result(uses[0], "sunny", images=images), a_result(uses[1], "no clock", is_error=True)]
    history = (question, an_assistant_message(*uses, text=asked.text), a_tool_message(*results))
    answered = await reply_of(model.stream(a_request(f"{kind}:test", turn=2, messages=history, tools=tools)))
    assert (answered.text, answered.calls, answered.finish_reason) == (ANSWER, (), "stop")
    assert answered.usage == ModelUsage(input_tokens=300, output_tokens=20)


@pytest.mark.parametrize("kind", WIRES)
async def test_a_reply_cut_by_its_length_says_so(aimock: Aimock, kind: ProviderKind) -> None:
    request = a_request(f"{kind}:test", messages=(a_user_message("cut"),))
    reply = await reply_of(aimock.model(kind).stream(request))
    assert (reply.text, reply.finish_reason) == ("This goes on and", "length")


@pytest.mark.parametrize("kind", WIRES)
async def test_text_may_come_after_calls(aimock: Aimock, kind: ProviderKind) -> None:
    request = a_request(f"{kind}:test", messages=(a_user_message("act first"),), tools=(a_tool("mcp__clock__now"),))
    reply = await reply_of(aimock.model(kind).stream(request))
    assert reply.text == "Looking at the clock."
    assert [call.name for call in reply.calls] == ["mcp__clock__now"]


@pytest.mark.parametrize("kind", WIRES)
async def test_a_request_nobody_can_answer_is_an_error(aimock: Aimock, kind: ProviderKind) -> None:
    with pytest.raises(ModelError) as raised:
        await all_events(aimock.model(kind).stream(a_request(f"{kind}:test", messages=(a_user_message("hm?"),))))
    assert raised.value.code == "model_unavailable"
