"""Lists of models: what is asked, and what is made of the answer."""

import json

import pytest

from application.models.ports import ModelError
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.model_list import MAX_MODELS, HttpModelList
from infrastructure.llm.providers import ProviderConfig
from tests.unit.llm.answers import AnsweringHttp, SomeAnswer

OPENAI = ProviderConfig(name="acme", kind=ProviderKind.OPENAI, base_url="http://models.test/v1/", api_key="sk-secret")
ANTHROPIC = ProviderConfig(name="acme", kind=ProviderKind.ANTHROPIC, base_url="http://models.test", api_key="sk-secret")


def listing(*names: object, status: int = 200) -> AnsweringHttp:
    return AnsweringHttp(SomeAnswer(status, whole=json.dumps({"data": [{"id": name} for name in names]}).encode()))


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    ("provider", "url", "header"),
    [
        (OPENAI, "http://models.test/v1/models", ("authorization", "Bearer sk-secret")),
        (ANTHROPIC, "http://models.test/v1/models?limit=1000", ("x-api-key", "sk-secret")),
    ],
    ids=["openai", "anthropic"],
)
async def test_models_are_listed_in_order_as_the_vendor_is_asked(
    provider: ProviderConfig, url: str, header: tuple[str, str]
) -> None:
    http = listing("small", "large", "large")
    assert await HttpModelList(provider=provider, http=http).names() == ("large", "small")
    [sent] = http.requests
    assert (sent.url, sent.body) == (url, b"")
    assert header in sent.headers.items()


@pytest.mark.requirement("H4")
async def test_names_that_cannot_be_shown_are_left_out_and_long_lists_cut() -> None:
    http = listing("", "a\nb", "x" * 257, *(f"m{number:05}" for number in range(MAX_MODELS + 1)))
    names = await HttpModelList(provider=OPENAI, http=http).names()
    assert (len(names), names[0]) == (MAX_MODELS, "m00000")


@pytest.mark.requirement("H4", "H6")
async def test_a_refusal_has_the_providers_words_without_the_key() -> None:
    body = {"error": {"message": "Incorrect API key provided: sk-secret.", "code": "invalid_api_key"}}
    http = AnsweringHttp(SomeAnswer(401, whole=json.dumps(body).encode()))
    with pytest.raises(ModelError) as raised:
        await HttpModelList(provider=OPENAI, http=http).names()
    assert raised.value.code == "model_auth"
    assert raised.value.provider_error is not None
    assert "Incorrect API key" in raised.value.provider_error.message
    assert "sk-secret" not in raised.value.provider_error.message


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("body", [b"<html>", b'{"data": 1}', b'{"data": [{"name": "x"}]}', b"\xff"])
async def test_what_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(ModelError) as raised:
        await HttpModelList(provider=OPENAI, http=AnsweringHttp(SomeAnswer(whole=body))).names()
    assert raised.value.code == "model_invalid_reply"
