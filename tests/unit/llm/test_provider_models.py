"""Each kind of provider is asked as its vendor wants it, and the library for vendors' own APIs is
loaded at its first use."""

import asyncio
from collections.abc import AsyncIterator
from threading import get_ident

import pytest

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelReply, ModelRequest
from domain.model_providers.cloud import CloudSettings
from domain.model_providers.provider import ProviderKind, ProviderWire, default_base_url
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.native_models import LoadNative, NativeModels
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.providers_extra import EXTRA_MISSING
from tests.unit.llm.answers import AnsweringHttp, SomeAnswer
from tests.unit.llm.model_requests import a_request, all_events, reply_of

pytestmark = pytest.mark.requirement("H4")
BASE_URLS = {
    ProviderKind.AZURE: "https://acme.openai.azure.com/openai/v1",
    ProviderKind.BEDROCK: "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1",
    ProviderKind.SNOWFLAKE: "https://acme.snowflakecomputing.com/api/v2/cortex/v1",
}
PATHS = {ProviderKind.ANTHROPIC: "/v1/messages", ProviderKind.OPENAI: "/responses"}
KEY_HEADERS = {ProviderKind.ANTHROPIC: ("x-api-key", "sk-1"), ProviderKind.AZURE: ("api-key", "sk-1")}


def opened(provider: ProviderConfig, http: AnsweringHttp, native: LoadNative | None = None) -> LanguageModel:
    return ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy(), native=native).open(provider)


@pytest.mark.parametrize("kind", sorted(set(ProviderKind) - {ProviderKind.VERTEX}))
async def test_each_kind_is_called_at_its_vendor_with_the_key_where_the_vendor_looks_for_it(kind: ProviderKind) -> None:
    base_url = BASE_URLS.get(kind) or default_base_url(kind, CloudSettings())
    http = AnsweringHttp(SomeAnswer(401, whole=b'{"error": {"message": "No."}}'))
    model = opened(ProviderConfig(name="acme", kind=kind, base_url=base_url, api_key="sk-1", guarded=False), http)
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request("acme:some-model")))
    assert raised.value.code == "model_auth"
    [sent] = http.requests
    assert sent.url == base_url + PATHS.get(kind, "/chat/completions")
    assert KEY_HEADERS.get(kind, ("authorization", "Bearer sk-1")) in sent.headers.items()


async def test_models_of_openai_at_bedrock_are_called_over_responses_with_a_key_of_bedrock() -> None:
    http = AnsweringHttp(SomeAnswer(401, whole=b"{}"))
    url = "https://bedrock-mantle.us-east-1.api.aws/openai/v1"
    provider = ProviderConfig(
        name="mantle", kind=ProviderKind.BEDROCK, base_url=url, wire=ProviderWire.RESPONSES, api_key="bedrock-key"
    )
    with pytest.raises(ModelError):
        await all_events(opened(provider, http).stream(a_request("mantle:openai.gpt-5.6-luna")))
    [sent] = http.requests
    assert sent.url == f"{url}/responses"
    assert sent.headers["authorization"] == "Bearer bedrock-key"


@pytest.mark.parametrize("kind", [ProviderKind.BEDROCK, ProviderKind.VERTEX])
def test_without_the_extra_vendors_own_apis_are_refused_before_a_request(kind: ProviderKind) -> None:
    cloud = CloudSettings(region="eu-central-1", project="p-1" if kind is ProviderKind.VERTEX else None)
    base_url = default_base_url(kind, cloud)
    http = AnsweringHttp(SomeAnswer())
    with pytest.raises(ModelError) as raised:
        opened(ProviderConfig(name="acme", kind=kind, base_url=base_url, cloud=cloud, guarded=False), http)
    assert raised.value.code == "model_rejected"
    assert EXTRA_MISSING in str(raised.value.detail)
    assert http.requests == []


class Hello:
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelReply(
            model=request.model, text="", calls=(), usage=ModelUsage(), finish_reason=FinishReason.STOP, streamed=False
        )


async def test_the_library_is_loaded_once_by_the_first_request_and_outside_of_the_event_loop() -> None:
    loads: list[int] = []

    def load(loop: asyncio.AbstractEventLoop) -> LanguageModel:
        assert loop.is_running()
        loads.append(get_ident())
        return Hello()

    models = NativeModels(load)
    assert loads == []
    await asyncio.gather(*(reply_of(models.stream(a_request())) for _ in range(3)))
    assert len(loads) == 1
    assert loads != [get_ident()]
