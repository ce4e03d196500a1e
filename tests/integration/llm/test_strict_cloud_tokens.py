"""Tokens that clouds give out for providers: where they are hidden, and what is sent without
one."""

import logging
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from aiohttp import web

from application.models.ports import ModelError
from domain.model_providers.cloud import CloudIdentity, CloudSettings
from domain.model_providers.provider import ProviderKind
from tests.integration.llm.strict import clouds, converse
from tests.integration.llm.strict.chat import StrictChat
from tests.integration.llm.strict.cloud import CASES, ON_VERTEX, Cloud, family_of, loop, native
from tests.integration.llm.strict.clouds import CloudTokens
from tests.integration.llm.strict.converse import StrictConverse
from tests.integration.llm.strict.provider import Answer, Json, Refusal, Said
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("H4")]
MINTED = [
    pytest.param(ProviderKind.VERTEX, ON_VERTEX, "gemini-3-pro", clouds.GOOGLE_TOKEN, id="google"),
    pytest.param(
        ProviderKind.VERTEX,
        replace(ON_VERTEX, identity=CloudIdentity.SERVICE),
        "meta/llama-4",
        clouds.MACHINE_TOKEN,
        id="machine",
    ),
    pytest.param(
        ProviderKind.AZURE,
        CloudSettings(tenant_id="tenant-1", client_id="app-1"),
        "our-deployment",
        clouds.ENTRA_TOKEN,
        id="entra",
    ),
    pytest.param(
        ProviderKind.BEDROCK,
        CloudSettings(region=converse.REGION, role="arn:aws:iam::123456789012:role/models"),
        "amazon.nova-pro-v1:0",
        clouds.ROLE_TOKEN,
        id="role",
    ),
]


def key_for(kind: ProviderKind, settings: CloudSettings, tokens: CloudTokens) -> str | None:
    if settings.identity is CloudIdentity.SERVICE:
        return None
    keys = {ProviderKind.VERTEX: tokens.service_account, ProviderKind.AZURE: clouds.CLIENT_SECRET}
    return keys.get(kind, "OTHERKEYOTHERKEY0001:otherSecretOfTheTests")


class Echo:
    """Refuses each request, with the values of its headers."""

    paths = ("/{path:.*}",)

    def key_of(self, request: web.Request, _: bytes) -> str:
        return " ".join(request.headers.values()).replace("Bearer ", "")

    def refusal(self, _path: str, _body: Json, key: str) -> Refusal:
        return Refusal(
            status=400, body={"message": f"I got: {key}", "error": {"code": 400, "message": f"I got: {key}"}}
        )

    def answer(self, body: Json, said: Said, key: str) -> Answer:
        raise AssertionError


@pytest.mark.parametrize(("kind", "settings", "name", "token"), MINTED)
async def test_tokens_given_out_for_a_provider_are_hidden_in_what_it_says(
    cloud: Cloud, tokens: CloudTokens, kind: ProviderKind, settings: CloudSettings, *, name: str, token: str
) -> None:
    there = await cloud.serve(Echo())
    model = cloud.models(there, kind, key=key_for(kind, settings, tokens), cloud=settings)
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(model, f"acme:{name}")
    assert token in there.keys[0]
    said = raised.value.provider_error
    assert said is not None
    assert "[redacted]" in said.message
    assert token not in f"{raised.value} {said}"


@pytest.mark.parametrize(("kind", "settings", "name", "token"), MINTED)
async def test_tokens_given_out_for_a_provider_are_in_no_line_of_the_most_verbose_log(
    cloud: Cloud,
    tokens: CloudTokens,
    kind: ProviderKind,
    settings: CloudSettings,
    debug_log: StringIO,
    *,
    name: str,
    token: str,
) -> None:
    there = await cloud.serve(Echo())
    with pytest.raises(ModelError):
        await Conversation().ask(
            cloud.models(there, kind, key=key_for(kind, settings, tokens), cloud=settings), f"acme:{name}"
        )
    logging.getLogger("infrastructure").debug("the log is written")
    assert token in there.keys[0]
    assert "the log is written" in debug_log.getvalue()
    assert token not in debug_log.getvalue()


async def test_tokens_of_a_cluster_on_azure_are_in_no_line_of_the_most_verbose_log(
    cloud: Cloud, tokens: CloudTokens, debug_log: StringIO, tmp_path: Path
) -> None:
    tokens.know_workload(tmp_path / "token")
    there = await cloud.serve(StrictChat(), prefix="/openai/v1")
    model = cloud.models(there, ProviderKind.AZURE, key=None, cloud=CloudSettings(identity=CloudIdentity.SERVICE))
    await loop(model, there, "our-deployment")
    logging.getLogger("infrastructure").debug("the log is written")
    assert "the log is written" in debug_log.getvalue()
    for token in (clouds.FEDERATED_TOKEN, clouds.ENTRA_TOKEN):
        assert token not in debug_log.getvalue()


async def test_a_machine_without_an_identity_of_aws_sends_nothing_and_is_asked_again(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    there = await cloud.serve(StrictConverse())
    settings = CloudSettings(region=converse.REGION, identity=CloudIdentity.SERVICE)
    model = cloud.models(there, ProviderKind.BEDROCK, key=None, cloud=settings)
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(model, "acme:amazon.nova-pro-v1:0")
    assert (raised.value.code, there.bodies) == ("model_auth", [])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", converse.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", converse.SECRET)
    await loop(model, there, "amazon.nova-pro-v1:0")


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
