"""Models under their names: who answers, and why one cannot be used."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelReply, ModelRequest, TextDelta
from domain.model_providers.provider import OFFICIAL_BASE_URLS, ProviderKind
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.routing import RoutedModels
from infrastructure.llm.scripted import ScriptedModels
from tests.builders import ORG
from tests.unit.llm.model_requests import SomeProviders, a_request, all_events, reply_of


class EchoModel:
    """Replies with the name of its provider."""

    def __init__(self, provider: ProviderConfig) -> None:
        self._provider = provider

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = self._provider.name
        yield TextDelta(text=name)
        yield ModelReply(model=request.model, text=name, calls=(), usage=ModelUsage(), finish_reason=FinishReason.STOP)


class Opening:
    def __init__(self) -> None:
        self.opened: list[str] = []

    def __call__(self, provider: ProviderConfig) -> LanguageModel:
        self.opened.append(provider.name)
        return EchoModel(provider)


def a_provider(name: str, kind: ProviderKind = ProviderKind.OPENAI, *, key: str | None = "k") -> ProviderConfig:
    return ProviderConfig(name=name, kind=kind, base_url=OFFICIAL_BASE_URLS[kind], api_key=key)


LOCAL = ProviderConfig(name="local", kind=ProviderKind.OPENAI, base_url="http://127.0.0.1:11434/v1")


def routed(*providers: ProviderConfig, folder: Path, opening: Opening | None = None) -> RoutedModels:
    return RoutedModels(
        providers=SomeProviders(*providers), open_provider=opening or Opening(), scripted=ScriptedModels([folder])
    )


async def test_the_name_before_the_colon_decides_and_a_provider_is_opened_once(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("turns: [{text: script}]")
    opening = Opening()
    models = routed(a_provider("openai"), LOCAL, folder=tmp_path, opening=opening)
    names = ("openai:gpt", "local:qwen3:8b", "openai:gpt", "scripted:s.yaml")
    answered = [(await reply_of(models.stream(a_request(name)))).text for name in names]
    assert answered == ["openai", "local", "openai", "script"]
    assert opening.opened == ["openai", "local"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("gpt-5", "PROVIDER:NAME"),
        (":gpt-5", "PROVIDER:NAME"),
        ("openai:", "PROVIDER:NAME"),
        ("mistral:large", "there are: anthropic, local, openai, scripted"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("scripted:nothing.yaml", "no script 'nothing.yaml'"),
    ],
)
async def test_a_model_that_cannot_be_used_is_explained_in_one_sentence(tmp_path: Path, model: str, says: str) -> None:
    models = routed(
        a_provider("openai"), a_provider("anthropic", ProviderKind.ANTHROPIC, key=None), LOCAL, folder=tmp_path
    )
    problem = await models.problem_with(ORG, model)
    assert problem is not None
    assert says in problem
    if not model.startswith(("gpt", ":", "openai:")):
        with pytest.raises(ModelError) as raised:
            await all_events(models.stream(a_request(model)))
        assert (raised.value.code, raised.value.detail) == ("model_rejected", problem)


async def test_a_model_that_can_be_used_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("turns: [{text: hi}]")
    models = routed(a_provider("openai"), LOCAL, folder=tmp_path)
    assert [await models.problem_with(ORG, name) for name in ("openai:x", "local:x", "scripted:s.yaml")] == [None] * 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": "Open AI"}, "provider name"),
        ({"name": "scripted"}, "provider name"),
        ({"api_key": "sk-secret\nx"}, "printable"),
        ({"api_key": ""}, "printable"),
        ({"base_url": "https://me:sk-secret@models.test/v1"}, "must not hold credentials"),
        ({"base_url": "models.test/v1"}, "must look like"),
        ({"base_url": "file:///etc"}, "must look like"),
        ({"base_url": "https://models.test/v1?key=sk-secret"}, "query"),
    ],
)
def test_a_provider_that_cannot_work_is_refused_without_naming_its_key(wrong: dict[str, str], says: str) -> None:
    right = {"name": "mine", "base_url": "https://models.test/v1", "api_key": "sk-secret"}
    values = right | wrong
    with pytest.raises(ValueError, match=says) as raised:
        ProviderConfig(
            kind=ProviderKind.OPENAI, name=values["name"], base_url=values["base_url"], api_key=values["api_key"]
        )
    assert "secret" not in str(raised.value)


def test_a_provider_does_not_show_its_key() -> None:
    assert "sk-secret" not in repr(a_provider("openai", key="sk-secret"))
