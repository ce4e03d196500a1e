"""What a provider's refusals teach about a model is kept, whatever other errors follow."""

import json
from collections import deque
from dataclasses import replace

import pytest

from application.models.ports import ModelError
from domain.model_providers.provider import EchoReasoning, ProviderKind
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.providers import ProviderConfig
from tests.unit.llm.answers import AnsweringHttp, Sent, SomeAnswer
from tests.unit.llm.model_requests import a_request, a_user_message, all_events, an_assistant_message

MODEL = "acme:m-1"
PROVIDER = ProviderConfig(
    name="acme",
    kind=ProviderKind.OPENAI,
    base_url="http://models.test/v1",
    echo_reasoning=EchoReasoning.ALWAYS,
)
ITEMS = ProviderItems(
    origin="acme models.test/v1 chat m-1", data=b'[{"role":"assistant","content":"Hi","reasoning_content":"Hm."}]'
)
THREAD = (a_user_message(), replace(an_assistant_message(text="Hi"), items=ITEMS), a_user_message("And?", number=4))


class AnsweringInTurn(AnsweringHttp):
    """Gives each request the next answer."""

    def __init__(self, *answers: SomeAnswer) -> None:
        self._answers = deque(answers)
        self.requests: list[Sent] = []

    def answer(self, sent: Sent) -> SomeAnswer:
        self.requests.append(sent)
        return self._answers.popleft()


def an_error(status: int, message: str = "Something else.") -> SomeAnswer:
    return SomeAnswer(status, whole=json.dumps({"error": {"message": message}}).encode())


def an_answer() -> SomeAnswer:
    whole = b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}'
    return SomeAnswer(headers={"content-type": "application/json"}, whole=whole)


async def ask(models: OpenAICompatibleModels) -> None:
    await all_events(models.stream(a_request(MODEL, messages=THREAD)))


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize("status", [429, 401, 500])
async def test_an_error_of_another_kind_is_raised_at_once_and_what_was_learned_stays(status: int) -> None:
    unwanted = an_error(400, "property 'reasoning_content' is unsupported")
    http = AnsweringInTurn(unwanted, an_error(status), an_answer())
    models = OpenAICompatibleModels(provider=PROVIDER, http=http)
    with pytest.raises(ModelError) as raised:
        await ask(models)
    assert raised.value.code != "model_rejected"
    await ask(models)
    assert [b"reasoning_content" in sent.body for sent in http.requests] == [True, False, False]


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize("status", [429, 401, 500])
async def test_an_error_of_another_kind_is_not_answered_with_what_another_request_has_learned(status: int) -> None:
    unwanted = an_error(400, "property 'reasoning_content' is unsupported")
    http = AnsweringInTurn(unwanted, an_answer(), an_error(status))
    models = OpenAICompatibleModels(provider=PROVIDER, http=http)
    earlier = models.stream(a_request(MODEL, messages=THREAD))
    await ask(models)
    with pytest.raises(ModelError):
        await all_events(earlier)
    assert len(http.requests) == 3
    assert [b"reasoning_content" in sent.body for sent in http.requests] == [True, False, True]
