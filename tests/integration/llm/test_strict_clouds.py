"""Models in clouds, with the identities that clouds have."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from io import StringIO

import pytest

from application.models.ports import LanguageModel, ModelError
from domain.model_providers.cloud import NO_CLOUD, CloudIdentity, CloudSettings
from domain.model_providers.provider import ProviderKind, ProviderWire
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.library.opening import native_models
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.runtime.logs import configure_logging
from infrastructure.secrets.redaction import Redactor
from tests.integration.llm.strict import clouds, converse, generate_content
from tests.integration.llm.strict.chat import StrictChat
from tests.integration.llm.strict.clouds import CloudTokens
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.generate_content import StrictGenerateContent
from tests.integration.llm.strict.messages import StrictMessages
from tests.integration.llm.strict.provider import Answer, Family, Json, Refusal, Said, StrictProvider
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("H4")]
CLOCK = "mcp__clock__now"
LOOP = (Said(text="I look.", calls=((CLOCK, {}),)), Said(text="It is noon."))
PLACE = "/v1/projects/project-1/locations/europe-west1"
GEMINI_PLACE = "/v1beta1/projects/project-1/locations/europe-west1/publishers/google/models"
ON_VERTEX = CloudSettings(region="europe-west1", project="project-1")
AWS_KEY = f"{converse.KEY_ID}:{converse.SECRET}"


@pytest.fixture
async def tokens() -> AsyncIterator[CloudTokens]:
    async with CloudTokens().serving() as there:
        yield there


class Cloud:
    """One strict family, and models of it as a provider of an organization opens them."""

    def __init__(self, stack: AsyncExitStack, http: AiohttpProviders, tokens: CloudTokens) -> None:
        self._stack = stack
        self._http = http
        self._tokens = tokens

    async def serve(self, family: Family, *, prefix: str = "", key_header: str | None = None) -> StrictProvider:
        there = StrictProvider(family, prefix=prefix, key_header=key_header)
        return await self._stack.enter_async_context(there.serving())

    def models(
        self,
        there: StrictProvider,
        kind: ProviderKind,
        *,
        key: str | None,
        cloud: CloudSettings = NO_CLOUD,
        wire: ProviderWire = ProviderWire.AUTO,
        path: str = "",
        streaming: bool = True,
    ) -> LanguageModel:
        opening = ProviderModels(
            http=self._http,
            guarded_http=self._http,
            outbound=EgressPolicy(),
            native=lambda: native_models,
            streaming=streaming,
            addresses=self._tokens.addresses,
        )
        url = there.url + path
        return opening.open(ProviderConfig(name="acme", kind=kind, base_url=url, api_key=key, cloud=cloud, wire=wire))


@pytest.fixture
async def cloud(http: AiohttpProviders, tokens: CloudTokens) -> AsyncIterator[Cloud]:
    async with AsyncExitStack() as stack:
        yield Cloud(stack, http, tokens)


class MessagesOnVertex(StrictMessages):
    """The model is in the address, and the version of the API in the body."""

    paths = (f"{PLACE}/publishers/anthropic/models/claude-opus-4-8@20260101:streamRawPredict",)

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        return super().refusal(path, self._plain(body), key)

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        return super().answer(self._plain(body), said, key)

    def _plain(self, body: Json) -> Json:
        plain = {name: value for name, value in body.items() if name != "anthropic_version"}
        return {**plain, "model": "claude-opus-4-8"}


async def loop(model: LanguageModel, there: StrictProvider, name: str) -> None:
    """A loop of one tool call."""
    there.say(*LOOP)
    thread = Conversation()
    await thread.ask(model, f"acme:{name}")
    thread.answer("12:00")
    assert (await thread.ask(model, f"acme:{name}")).text == "It is noon."
    assert there.refused == []


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
async def test_gemini_on_vertex_is_called_with_a_token_of_the_service_account(
    cloud: Cloud, tokens: CloudTokens, streaming: bool
) -> None:
    family = StrictGenerateContent(place=GEMINI_PLACE, key=f"Bearer {clouds.GOOGLE_TOKEN}", key_header="authorization")
    there = await cloud.serve(family)
    model = cloud.models(there, ProviderKind.VERTEX, key=tokens.service_account, cloud=ON_VERTEX, streaming=streaming)
    await loop(model, there, "gemini-3-pro")
    assert tokens.asked == ["google"]


async def test_claude_on_vertex_is_called_over_the_messages_api_at_its_address(
    cloud: Cloud, tokens: CloudTokens
) -> None:
    there = await cloud.serve(MessagesOnVertex(adaptive=True), key_header="authorization")
    model = cloud.models(there, ProviderKind.VERTEX, key=tokens.service_account, cloud=ON_VERTEX)
    await loop(model, there, "claude-opus-4-8@20260101")
    assert {body["anthropic_version"] for body in there.bodies} == {"vertex-2023-10-16"}
    assert "model" not in there.bodies[0]
    assert set(there.keys) == {f"Bearer {clouds.GOOGLE_TOKEN}"}


async def test_other_makers_on_vertex_are_called_over_chat_completions(cloud: Cloud, tokens: CloudTokens) -> None:
    there = await cloud.serve(StrictChat(), prefix=f"{PLACE}/endpoints/openapi", key_header="authorization")
    there.url = there.url.removesuffix(f"{PLACE}/endpoints/openapi")
    model = cloud.models(there, ProviderKind.VERTEX, key=tokens.service_account, cloud=ON_VERTEX)
    await loop(model, there, "meta/llama-4")
    assert set(there.keys) == {f"Bearer {clouds.GOOGLE_TOKEN}"}


async def test_the_machine_of_google_cloud_has_its_own_identity(cloud: Cloud, tokens: CloudTokens) -> None:
    family = StrictGenerateContent(place=GEMINI_PLACE, key=f"Bearer {clouds.MACHINE_TOKEN}", key_header="authorization")
    there = await cloud.serve(family)
    settings = CloudSettings(region="europe-west1", project="project-1", identity=CloudIdentity.SERVICE)
    await loop(cloud.models(there, ProviderKind.VERTEX, key=None, cloud=settings), there, "gemini-3-pro")
    assert tokens.asked == ["google-metadata"]


async def test_an_application_of_entra_gets_a_token_for_its_secret_which_is_not_sent_to_the_model(
    cloud: Cloud, tokens: CloudTokens
) -> None:
    there = await cloud.serve(StrictChat(), prefix="/openai/v1", key_header="authorization")
    settings = CloudSettings(tenant_id="tenant-1", client_id="app-1")
    model = cloud.models(there, ProviderKind.AZURE, key=clouds.CLIENT_SECRET, cloud=settings)
    await loop(model, there, "our-deployment")
    assert set(there.keys) == {f"Bearer {clouds.ENTRA_TOKEN}"}
    assert tokens.asked == ["entra tenant-1"]


async def test_a_refused_application_is_told_without_its_secret(cloud: Cloud, tokens: CloudTokens) -> None:
    there = await cloud.serve(StrictChat(), prefix="/openai/v1")
    settings = CloudSettings(tenant_id="tenant-1", client_id="app-1")
    model = cloud.models(there, ProviderKind.AZURE, key="an~old~secret~of~theirs", cloud=settings)
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(model, "acme:our-deployment")
    assert raised.value.code == "model_auth"
    assert "an~old~secret" not in f"{raised.value} {raised.value.provider_error}"


async def test_a_machine_of_azure_has_its_managed_identity(cloud: Cloud, tokens: CloudTokens) -> None:
    there = await cloud.serve(StrictChat(), prefix="/openai/v1", key_header="authorization")
    settings = CloudSettings(identity=CloudIdentity.SERVICE, client_id="managed-1")
    await loop(cloud.models(there, ProviderKind.AZURE, key=None, cloud=settings), there, "our-deployment")
    assert tokens.asked == ["azure-metadata managed-1"]


async def test_a_role_of_aws_is_assumed_once(cloud: Cloud, tokens: CloudTokens) -> None:
    there = await cloud.serve(StrictConverse(role_token=clouds.ROLE_TOKEN))
    role = "arn:aws:iam::123456789012:role/models"
    settings = CloudSettings(region=converse.REGION, role=role)
    await loop(
        cloud.models(there, ProviderKind.BEDROCK, key="OTHERKEYOTHERKEY0001:otherSecretOfTheTests", cloud=settings),
        there,
        "amazon.nova-pro-v1:0",
    )
    assert tokens.asked == [role]


async def test_an_api_key_of_bedrock_is_sent_instead_of_a_signature(cloud: Cloud) -> None:
    there = await cloud.serve(StrictConverse())
    settings = CloudSettings(region=converse.REGION)
    await loop(
        cloud.models(there, ProviderKind.BEDROCK, key=converse.API_KEY, cloud=settings), there, "amazon.nova-pro-v1:0"
    )
    assert set(there.keys) == {converse.API_KEY}


CASES = [
    pytest.param(ProviderKind.GOOGLE, generate_content.KEY, "gemini-3-pro", id="gemini"),
    pytest.param(ProviderKind.BEDROCK, AWS_KEY, "amazon.nova-pro-v1:0", id="bedrock"),
]


def native(
    cloud: Cloud, there: StrictProvider, kind: ProviderKind, key: str, *, streaming: bool = True
) -> LanguageModel:
    settings = CloudSettings(region=converse.REGION) if kind is ProviderKind.BEDROCK else NO_CLOUD
    return cloud.models(there, kind, key=key, cloud=settings, wire=ProviderWire.NATIVE, streaming=streaming)


def family_of(kind: ProviderKind) -> Family:
    return StrictConverse() if kind is ProviderKind.BEDROCK else StrictGenerateContent()


CODES = {400: "model_rejected", 401: "model_auth", 429: "model_rate_limited", 503: "model_unavailable"}


@pytest.mark.parametrize(("kind", "key", "name"), CASES)
@pytest.mark.parametrize("status", CODES)
async def test_refusals_have_our_codes_and_the_words_of_the_vendor_without_the_key(
    cloud: Cloud, kind: ProviderKind, key: str, name: str, *, status: int
) -> None:
    there = await cloud.serve(family_of(kind))
    words = f"No, {key.rpartition(':')[2]} may not."
    error = {"message": words, "error": {"code": status, "message": words, "status": "NO"}}
    there.refuse(Refusal(status=status, body=error, headers={"retry-after": "7"}))
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(native(cloud, there, kind, key), f"acme:{name}")
    assert raised.value.code == CODES[status]
    assert raised.value.provider_error is not None
    assert raised.value.provider_error.message == "No, [redacted] may not."
    assert len(there.bodies) == 1


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(("kind", "key", "name"), CASES)
async def test_a_private_address_is_refused_before_a_connection(
    kind: ProviderKind, key: str, name: str, tokens: CloudTokens
) -> None:
    guarded = provider_http(HttpClients(), egress=EgressPolicy())
    there = StrictProvider(family_of(kind))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(guarded.aclose)
        await stack.enter_async_context(there.serving())
        # By a name, so that no URL shows where it leads.
        there.url = there.url.replace("127.0.0.1", "localhost")
        model = native(Cloud(stack, guarded, tokens), there, kind, key)
        with pytest.raises(ModelError) as raised:
            await Conversation().ask(model, f"acme:{name}")
    assert raised.value.code == "model_rejected"
    assert "not public" in raised.value.detail
    assert there.bodies == []


@pytest.fixture
def debug_log() -> Iterator[StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log = StringIO()
    configure_logging(level="debug", form="json", redactor=Redactor(), stream=log)
    yield log
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(("kind", "key", "name"), CASES)
async def test_keys_and_tokens_are_in_no_line_of_the_most_verbose_log(
    cloud: Cloud, kind: ProviderKind, key: str, name: str, debug_log: StringIO
) -> None:
    there = await cloud.serve(family_of(kind))
    await loop(native(cloud, there, kind, key), there, name)
    logging.getLogger("infrastructure").debug("the log is written")
    assert "the log is written" in debug_log.getvalue()
    for part in (key.rpartition(":")[2], "AWS4-HMAC-SHA256", "What time is it?"):
        assert part not in debug_log.getvalue()


async def test_bedrock_lists_no_models_for_access_keys_and_does_not_call_the_key_refused(
    http: AiohttpProviders,
) -> None:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy(), native=lambda: native_models)
    url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
    models = opening.model_list(ProviderConfig(name="acme", kind=ProviderKind.BEDROCK, base_url=url, api_key=AWS_KEY))
    with pytest.raises(ModelError) as raised:
        await models.names()
    assert raised.value.code == "model_rejected"
