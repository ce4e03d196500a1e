"""The contract of `ModelProviderStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.secrets.ports import SecretUser
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from domain.model_providers.cloud import CloudSettings
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import MAX_PROVIDERS, EchoReasoning, ModelProvider, ProviderKind, ProviderWire
from domain.secrets.secret import Secret, SecretRef
from tests.builders import ORG, OTHER_ORG, START, after, an_audit_event
from tests.contract.paging import all_of
from tests.contract.stores import Stores


def a_provider(
    name: str = "acme",
    *,
    organization_id: OrganizationId = ORG,
    key: str | SecretRef | None = "sk-acme",
    number: int = 0,
) -> ModelProvider:
    return ModelProvider(
        organization_id=organization_id,
        name=name,
        kind=ProviderKind.ANTHROPIC,
        base_url="https://models.example.com",
        api_key=key,
        created_at=after(number),
        updated_at=after(number),
    )


def created(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MODEL_PROVIDER_CREATED)


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("key", ["sk-acme", SecretRef("ACME"), None])
async def test_a_provider_comes_back_as_it_was_stored_key_and_all(stores: Stores, key: str | SecretRef | None) -> None:
    await stores.model_providers.add(a_provider(key=key), created())
    assert await stores.model_providers.all(ORG) == (a_provider(key=key),)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (created(),)


@pytest.mark.requirement("H2", "H6")
async def test_a_provider_comes_back_with_its_wire_and_its_deployments_keys_and_all(stores: Stores) -> None:
    deployments = (
        Deployment(name="eu", base_url="https://eu.example.com/v1", api_key="sk-eu", weight=3),
        Deployment(name="us", api_key=SecretRef("US")),
        Deployment(name="own"),
    )
    provider = replace(a_provider(), kind=ProviderKind.OPENAI, wire=ProviderWire.CHAT, deployments=deployments)
    provider = replace(provider, echo_reasoning=EchoReasoning.ALWAYS)
    await stores.model_providers.add(provider, created())
    assert await stores.model_providers.all(ORG) == (provider,)
    changed = replace(provider, deployments=deployments[1:], version=2)
    await stores.model_providers.save(changed, expected_version=1, audit=created(2))
    assert await stores.model_providers.all(ORG) == (changed,)


@pytest.mark.requirement("H4")
async def test_a_provider_comes_back_with_its_cloud_settings(stores: Stores) -> None:
    cloud = CloudSettings(region="eu-central-1", role="arn:aws:iam::123456789012:role/models")
    address = "https://bedrock-runtime.eu-central-1.amazonaws.com"
    provider = replace(a_provider(), kind=ProviderKind.BEDROCK, base_url=address, cloud=cloud)
    await stores.model_providers.add(provider, created())
    assert await stores.model_providers.all(ORG) == (provider,)


@pytest.mark.requirement("C6", "C7")
async def test_two_organizations_with_one_name_each_have_their_own(stores: Stores) -> None:
    theirs = a_provider(organization_id=OTHER_ORG, key="sk-theirs")
    assert await stores.model_providers.all(OTHER_ORG) == ()
    await stores.model_providers.add(a_provider(), created(1))
    await stores.model_providers.add(theirs, replace(created(2), organization_id=OTHER_ORG))
    assert await stores.model_providers.all(ORG) == (a_provider(),)
    assert await stores.model_providers.all(OTHER_ORG) == (theirs,)
    assert await stores.model_providers.delete(ORG, "acme", an_audit_event(3))
    assert await stores.model_providers.all(OTHER_ORG) == (theirs,)
    assert (await stores.model_providers.page(OTHER_ORG, page_request())).items == (theirs,)


async def test_a_name_is_given_once(stores: Stores) -> None:
    await stores.model_providers.add(a_provider(), created(1))
    with pytest.raises(ServiceError) as refused:
        await stores.model_providers.add(a_provider(key="another"), created(2))
    assert (refused.value.kind, refused.value.code) == (ErrorKind.CONFLICT, "model_provider_exists")
    assert await stores.model_providers.all(ORG) == (a_provider(),)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (created(1),)


async def test_there_is_an_end_to_how_many_an_organization_may_have(stores: Stores) -> None:
    for number in range(MAX_PROVIDERS):
        await stores.model_providers.add(a_provider(f"p{number}"), created(number + 1))
    with pytest.raises(ServiceError) as refused:
        await stores.model_providers.add(a_provider("one-more"), created(MAX_PROVIDERS + 1))
    assert refused.value.code == "too_many_model_providers"
    await stores.model_providers.add(
        a_provider(organization_id=OTHER_ORG), replace(created(999), organization_id=OTHER_ORG)
    )


@pytest.mark.requirement("C7")
async def test_a_change_is_seen_by_the_next_read(stores: Stores) -> None:
    await stores.model_providers.add(a_provider(), created(1))
    assert await stores.model_providers.all(ORG) == (a_provider(),)
    changed = replace(
        a_provider(key=SecretRef("ACME")), kind=ProviderKind.OPENAI, base_url="http://other.example", version=2
    )
    await stores.model_providers.save(changed, expected_version=1, audit=created(2))
    assert await stores.model_providers.all(ORG) == (changed,)
    with pytest.raises(ServiceError) as stale:
        await stores.model_providers.save(a_provider(), expected_version=1, audit=created(3))
    assert (stale.value.kind, stale.value.code) == (ErrorKind.PRECONDITION, "version_conflict")
    with pytest.raises(ServiceError) as missing:
        await stores.model_providers.save(a_provider("nobody"), expected_version=1, audit=created(4))
    assert missing.value.code == "model_provider_not_found"
    assert await stores.model_providers.all(ORG) == (changed,)


async def test_a_deleted_provider_is_gone_and_its_name_free(stores: Stores) -> None:
    await stores.model_providers.add(a_provider(), created(1))
    assert len(await stores.model_providers.all(ORG)) == 1
    assert await stores.model_providers.delete(ORG, "acme", an_audit_event(2))
    assert not await stores.model_providers.delete(ORG, "acme", an_audit_event(3))
    assert await stores.model_providers.all(ORG) == ()
    await stores.model_providers.add(a_provider(key="new"), created(4))
    assert await stores.model_providers.all(ORG) == (a_provider(key="new"),)


async def test_providers_are_listed_newest_first(stores: Stores) -> None:
    for number, name in enumerate(("b", "c", "a")):
        await stores.model_providers.add(a_provider(name, number=number), created(number + 1))
    first = await stores.model_providers.page(ORG, page_request(2))
    rest = await stores.model_providers.page(ORG, PageRequest(limit=2, cursor=first.next_cursor))
    assert [provider.name for provider in (*first.items, *rest.items)] == ["a", "c", "b"]
    assert rest.next_cursor is None
    assert [provider.name for provider in await stores.model_providers.all(ORG)] == ["a", "b", "c"]


@pytest.mark.requirement("C7")
async def test_a_secret_that_a_provider_takes_its_key_from_stays(stores: Stores) -> None:
    secret = Secret(organization_id=ORG, name="ACME", created_at=START, updated_at=START)
    await stores.secrets.put(secret, "sk-1", an_audit_event(1))
    await stores.model_providers.add(a_provider(key=SecretRef("ACME")), created(2))
    assert await stores.secrets.users(ORG, "ACME") == (SecretUser(name="acme"),)
    assert await stores.secrets.users(OTHER_ORG, "ACME") == ()
    with pytest.raises(ServiceError) as refused:
        await stores.secrets.delete(ORG, "ACME", an_audit_event(3))
    assert (refused.value.code, refused.value.extra) == ("secret_in_use", {"used_by": "acme"})
    await stores.model_providers.delete(ORG, "acme", an_audit_event(4))
    assert await stores.secrets.delete(ORG, "ACME", an_audit_event(5))


@pytest.mark.requirement("C7", "H6")
async def test_a_secret_that_a_deployment_takes_its_key_from_stays(stores: Stores) -> None:
    secret = Secret(organization_id=ORG, name="US", created_at=START, updated_at=START)
    await stores.secrets.put(secret, "sk-1", an_audit_event(1))
    deployments = (Deployment(name="eu", api_key="sk-eu"), Deployment(name="us", api_key=SecretRef("US")))
    await stores.model_providers.add(replace(a_provider(), deployments=deployments), created(2))
    with pytest.raises(ServiceError) as refused:
        await stores.secrets.delete(ORG, "US", an_audit_event(3))
    assert (refused.value.code, refused.value.extra) == ("secret_in_use", {"used_by": "acme"})


@pytest.mark.requirement("C7")
async def test_a_secrets_value_is_the_newest_one_however_often_it_was_read(stores: Stores) -> None:
    secret = Secret(organization_id=ORG, name="ACME", created_at=START, updated_at=START)
    assert await stores.secrets.value(ORG, "ACME") is None
    for number, value in enumerate(("sk-1", "sk-2"), start=1):
        await stores.secrets.put(secret, value, an_audit_event(number))
        assert [await stores.secrets.value(ORG, "ACME") for _ in range(2)] == [value] * 2
        assert await stores.secrets.value(OTHER_ORG, "ACME") is None
    await stores.secrets.delete(ORG, "ACME", an_audit_event(3))
    assert await stores.secrets.value(ORG, "ACME") is None


def page_request(limit: int = 50) -> PageRequest:
    return PageRequest(limit=limit)
