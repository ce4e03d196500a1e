"""Model providers in clouds: which settings each kind takes, and where the machine's identity may
go."""

import json
from typing import Any

import pytest

from domain.errors import ServiceError
from domain.model_providers.cloud import CloudIdentity, CloudSettings, aws_keys
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import (
    ModelProvider,
    ProviderKind,
    ProviderWire,
    default_base_url,
    is_native,
    region_of,
)
from tests.builders import ORG, START

pytestmark = pytest.mark.requirement("H4")
ACCOUNT = json.dumps({"type": "service_account", "client_email": "a@b", "private_key": "-----BEGIN\nKEY"})
AWS = "TESTKEYTESTKEYTEST01:aSecret/of+the+tests/"
ROLE = "arn:aws:iam::123456789012:role/models"


def provider(kind: ProviderKind, cloud: CloudSettings | None, **fields: Any) -> ModelProvider:
    base_url = fields.pop("base_url", None) or default_base_url(kind, cloud or CloudSettings())
    return ModelProvider(
        organization_id=ORG,
        name="acme",
        kind=kind,
        base_url=base_url,
        cloud=cloud,
        created_at=START,
        updated_at=START,
        **fields,
    )


def faults(kind: ProviderKind, cloud: CloudSettings | None, **fields: Any) -> list[str]:
    with pytest.raises(ServiceError) as raised:
        provider(kind, cloud, **fields)
    assert raised.value.code == "model_provider_invalid"
    return sorted(violation.path for violation in raised.value.violations)


@pytest.mark.parametrize(
    ("kind", "region", "address"),
    [
        (ProviderKind.VERTEX, "europe-west1", "https://europe-west1-aiplatform.googleapis.com"),
        (ProviderKind.VERTEX, None, "https://aiplatform.googleapis.com"),
        (ProviderKind.VERTEX, "eu", "https://aiplatform.eu.rep.googleapis.com"),
        (ProviderKind.BEDROCK, "eu-central-1", "https://bedrock-runtime.eu-central-1.amazonaws.com"),
        (ProviderKind.BEDROCK, "cn-north-1", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_region_has_an_address_and_an_address_its_region(
    kind: ProviderKind, region: str | None, address: str
) -> None:
    assert default_base_url(kind, CloudSettings(region=region)) == address
    assert region_of(kind, address, CloudSettings(region="elsewhere-1")) == (region or "global")


def test_bedrock_is_called_natively_at_an_address_without_a_path() -> None:
    base = "https://bedrock-runtime.eu-central-1.amazonaws.com"
    assert is_native(ProviderKind.BEDROCK, ProviderWire.AUTO, base)
    assert not is_native(ProviderKind.BEDROCK, ProviderWire.AUTO, f"{base}/openai/v1")
    assert is_native(ProviderKind.GOOGLE, ProviderWire.NATIVE, "https://generativelanguage.googleapis.com")
    assert not is_native(ProviderKind.GOOGLE, ProviderWire.AUTO, "https://generativelanguage.googleapis.com")


def test_bedrock_without_a_region_and_an_address_is_told_of_both() -> None:
    with pytest.raises(ServiceError) as raised:
        provider(ProviderKind.BEDROCK, CloudSettings(), api_key=AWS)
    (fault,) = raised.value.violations
    assert (fault.path, "cloud.region" in fault.message) == ("base_url", True)


def test_settings_of_each_kind_are_taken() -> None:
    provider(ProviderKind.VERTEX, CloudSettings(project="p-1", region="global"), api_key=ACCOUNT)
    provider(ProviderKind.BEDROCK, CloudSettings(region="eu-central-1", role=ROLE), api_key=AWS)
    azure = CloudSettings(tenant_id="t-1", client_id="c-1")
    provider(ProviderKind.AZURE, azure, base_url="https://acme.openai.azure.com/openai/v1", api_key="a~secret")


@pytest.mark.parametrize(
    ("kind", "cloud", "fields", "paths"),
    [
        (ProviderKind.OPENAI, CloudSettings(region="eu-1"), {}, ["cloud.region"]),
        (ProviderKind.OPENAI, CloudSettings(identity=CloudIdentity.SERVICE), {}, ["cloud.identity"]),
        (ProviderKind.OPENAI, None, {"wire": ProviderWire.NATIVE}, ["wire"]),
        (ProviderKind.VERTEX, None, {}, ["cloud.project"]),
        (ProviderKind.VERTEX, CloudSettings(project="p/../q"), {}, ["cloud.project"]),
        (
            ProviderKind.VERTEX,
            CloudSettings(project="p", region="evil.com/x"),
            {"base_url": "https://x.example"},
            ["cloud.region"],
        ),
        (ProviderKind.VERTEX, CloudSettings(project="p"), {"api_key": "not-a-service-account"}, ["api_key"]),
        (
            ProviderKind.VERTEX,
            CloudSettings(project="p"),
            {"api_key": json.dumps({"type": "external_account", "token_url": "https://x.example"})},
            ["api_key"],
        ),
        (ProviderKind.VERTEX, CloudSettings(project="p"), {"wire": ProviderWire.CHAT}, ["wire"]),
        (ProviderKind.BEDROCK, None, {"base_url": "https://bedrock.internal"}, ["cloud.region"]),
        (ProviderKind.BEDROCK, CloudSettings(region="eu-central-1", role="admin"), {}, ["cloud.role"]),
        (ProviderKind.BEDROCK, CloudSettings(region="eu-central-1", profile="p"), {}, ["cloud.profile"]),
        (
            ProviderKind.BEDROCK,
            CloudSettings(role=ROLE),
            {"base_url": "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"},
            ["cloud.role"],
        ),
        (
            ProviderKind.AZURE,
            CloudSettings(tenant_id="t"),
            {"base_url": "https://acme.openai.azure.com/openai/v1"},
            ["cloud.client_id"],
        ),
        (
            ProviderKind.AZURE,
            CloudSettings(client_id="c"),
            {"base_url": "https://acme.openai.azure.com/openai/v1"},
            ["cloud.tenant_id"],
        ),
    ],
)
def test_other_settings_are_refused(
    kind: ProviderKind, cloud: CloudSettings | None, fields: dict[str, Any], paths: list[str]
) -> None:
    assert faults(kind, cloud, **fields) == paths


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (ProviderKind.VERTEX, "https://vertex.example.com"),
        (ProviderKind.VERTEX, "https://europe-west1-aiplatform.googleapis.com.example.com"),
        (ProviderKind.VERTEX, "http://europe-west1-aiplatform.googleapis.com"),
        (ProviderKind.BEDROCK, "https://x.execute-api.eu-central-1.amazonaws.com"),
        (ProviderKind.AZURE, "https://models.example.com/openai/v1"),
    ],
)
def test_the_identity_of_the_machine_goes_to_the_vendor_only(kind: ProviderKind, address: str) -> None:
    cloud = CloudSettings(
        identity=CloudIdentity.SERVICE,
        project="p" if kind is ProviderKind.VERTEX else None,
        region="eu-central-1" if kind is ProviderKind.BEDROCK else None,
    )
    assert faults(kind, cloud, base_url=address) == ["base_url"]
    if kind is not ProviderKind.AZURE:
        there = (Deployment(name="there", base_url=address),)
        assert faults(kind, cloud, deployments=there) == ["deployments.0.base_url"]


def test_a_provider_with_the_identity_of_the_machine_has_no_key() -> None:
    cloud = CloudSettings(identity=CloudIdentity.SERVICE, project="p")
    assert faults(ProviderKind.VERTEX, cloud, api_key=ACCOUNT) == ["api_key"]


def test_a_refused_key_is_not_quoted() -> None:
    with pytest.raises(ServiceError) as raised:
        provider(ProviderKind.VERTEX, CloudSettings(project="p"), api_key="my-very-secret-key")
    assert "very-secret" not in f"{raised.value.detail} {raised.value.violations}"


def test_access_keys_of_aws_are_told_from_api_keys() -> None:
    keys = aws_keys(f"{AWS}:sessionTokenOfTheTests==")
    assert keys is not None
    assert (keys.key_id, keys.token) == ("TESTKEYTESTKEYTEST01", "sessionTokenOfTheTests==")
    assert aws_keys("bedrock-api-key-YmVkcm9jaw==") is None
