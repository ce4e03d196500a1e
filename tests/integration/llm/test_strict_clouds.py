"""Models in clouds, with the identities that clouds have."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from anyio.to_thread import current_default_thread_limiter

from application.models.ports import ModelError
from domain.model_providers.cloud import CloudIdentity, CloudSettings
from domain.model_providers.provider import ProviderKind
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.library.opening import native_models
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.integration.llm.strict import clouds, converse
from tests.integration.llm.strict.chat import StrictChat
from tests.integration.llm.strict.cloud import AWS_KEY, CASES, ON_VERTEX, Cloud, family_of, loop, native
from tests.integration.llm.strict.clouds import CloudTokens
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.generate_content import StrictGenerateContent
from tests.integration.llm.strict.messages import StrictMessages
from tests.integration.llm.strict.provider import Answer, Json, Refusal, Said, StrictProvider
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("H4")]
PLACE = "/v1/projects/project-1/locations/europe-west1"
GEMINI_PLACE = "/v1beta1/projects/project-1/locations/europe-west1/publishers/google/models"


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


async def test_gemini_on_vertex_is_called_with_a_token_of_the_service_account(
    cloud: Cloud, tokens: CloudTokens
) -> None:
    family = StrictGenerateContent(place=GEMINI_PLACE, key=f"Bearer {clouds.GOOGLE_TOKEN}", key_header="authorization")
    there = await cloud.serve(family)
    model = cloud.models(there, ProviderKind.VERTEX, key=tokens.service_account, cloud=ON_VERTEX)
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


@pytest.mark.parametrize(
    ("wanted", "client_id"), [(None, "workload-1"), ("app-2", "app-2")], ids=["its own", "another"]
)
async def test_a_workload_of_a_cluster_on_azure_gets_tokens_for_the_newest_token_of_its_cluster(
    cloud: Cloud, tokens: CloudTokens, tmp_path: Path, wanted: str | None, client_id: str
) -> None:
    tokens.know_workload(tmp_path / "token")
    tokens.valid_s = 0
    there = await cloud.serve(StrictChat(), prefix="/openai/v1", key_header="authorization")
    settings = CloudSettings(identity=CloudIdentity.SERVICE, client_id=wanted)
    model = cloud.models(there, ProviderKind.AZURE, key=None, cloud=settings)
    await loop(model, there, "our-deployment")
    tokens.federated_token = "eyJ.of-the-next-hour.signed"
    tokens.know_workload(tmp_path / "token")
    await loop(model, there, "our-deployment")
    assert set(there.keys) == {f"Bearer {clouds.ENTRA_TOKEN}"}
    assert tokens.asked == [f"entra tenant-1 for {client_id}"] * 4


async def test_a_refused_workload_is_told_without_the_token_of_its_cluster(
    cloud: Cloud, tokens: CloudTokens, tmp_path: Path
) -> None:
    tokens.know_workload(tmp_path / "token")
    tokens.federated_token = "eyJ.of-the-next-hour.signed"
    there = await cloud.serve(StrictChat(), prefix="/openai/v1")
    settings = CloudSettings(identity=CloudIdentity.SERVICE)
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(
            cloud.models(there, ProviderKind.AZURE, key=None, cloud=settings), "acme:our-deployment"
        )
    assert raised.value.code == "model_auth"
    assert "AADSTS700024" in f"{raised.value.provider_error}"
    assert clouds.FEDERATED_TOKEN not in f"{raised.value} {raised.value.provider_error}"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"e" * 20_000], ids=["gone", "empty", "binary", "long"])
async def test_a_workload_without_a_readable_token_sends_nothing(
    cloud: Cloud, tokens: CloudTokens, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "token"
    tokens.know_workload(file)
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    there = await cloud.serve(StrictChat(), prefix="/openai/v1")
    model = cloud.models(there, ProviderKind.AZURE, key=None, cloud=CloudSettings(identity=CloudIdentity.SERVICE))
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(model, "acme:our-deployment")
    assert (raised.value.code, tokens.asked, there.bodies) == ("model_auth", [], [])
    assert "AZURE_FEDERATED_TOKEN_FILE" in raised.value.detail


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


@pytest.mark.requirement("A12")
@pytest.mark.parametrize(("kind", "key", "name"), CASES)
@pytest.mark.parametrize(
    "said", [Said(silent=True), Said(text="I look, and look.", hangs_after=2)], ids=["silent", "slow"]
)
async def test_a_cancelled_call_ends_its_request_at_once(
    cloud: Cloud, kind: ProviderKind, key: str, name: str, said: Said
) -> None:
    there = await cloud.serve(family_of(kind))
    there.say(said)
    asking = asyncio.create_task(Conversation().ask(native(cloud, there, kind, key), f"acme:{name}"))
    await there.hanging.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await there.cut_off.wait()


@pytest.mark.parametrize(
    "said", [Said(silent=True), Said(text="I look, and look.", hangs_after=2)], ids=["silent", "slow"]
)
async def test_silent_calls_of_one_provider_leave_threads_to_the_others(cloud: Cloud, said: Said) -> None:
    limiter = current_default_thread_limiter()
    limiter.total_tokens = 1
    silent, other = await cloud.serve(StrictConverse()), await cloud.serve(StrictConverse())
    slow = native(cloud, silent, ProviderKind.BEDROCK, AWS_KEY)
    silent.say(*[said] * 3)
    asking = []
    for _ in range(3):
        asking.append(asyncio.create_task(Conversation().ask(slow, "acme:amazon.nova-pro-v1:0")))
        await silent.hanging.wait()
        silent.hanging.clear()
    await loop(native(cloud, other, ProviderKind.BEDROCK, AWS_KEY), other, "amazon.nova-pro-v1:0")
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert limiter.total_tokens == 1


async def test_a_key_of_another_kind_that_looks_like_one_of_aws_is_sent(cloud: Cloud) -> None:
    there = await cloud.serve(StrictChat())
    key = "TEAMALPHA1234567:abcdefghijklmnop"
    await loop(cloud.models(there, ProviderKind.OPENAI, key=key), there, "gpt-test")
    assert set(there.keys) == {key}


async def test_bedrock_lists_no_models_for_access_keys_and_does_not_call_the_key_refused(
    http: AiohttpProviders,
) -> None:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy(), native=lambda: native_models)
    url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
    models = opening.model_list(ProviderConfig(name="acme", kind=ProviderKind.BEDROCK, base_url=url, api_key=AWS_KEY))
    with pytest.raises(ModelError) as raised:
        await models.names()
    assert raised.value.code == "model_rejected"
