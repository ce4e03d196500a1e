"""The contract of `SecretStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.secrets.ports import SecretUser
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.runs.webhook import Webhook
from domain.secrets.secret import Secret, SecretRef
from tests.builders import ORG, OTHER_ORG, SERVER, a_server, after, an_audit_event, numbered
from tests.contract.paging import all_of, pages_of
from tests.contract.stores import Stores
from tests.schedule_builders import SCHEDULE, a_schedule, a_schedule_id, made

VALUE = " s3cret – 🙂\nwith a second line\n"
USING = McpServerConfig(
    slug="tickets",
    kind=McpServerKind.HTTP,
    url="https://mcp.example.org/mcp",
    headers={"Authorization": SecretRef("TOKEN"), "X-Plain": "TOKEN"},
)


def a_secret(name: str = "TOKEN", *, at: float = 1, organization_id: OrganizationId = ORG) -> Secret:
    return Secret(organization_id=organization_id, name=name, created_at=after(at), updated_at=after(at))


def set_(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.SECRET_SET)


def deleted(number: int = 9) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.SECRET_DELETED)


@pytest.mark.requirement("C7")
async def test_a_value_comes_back_exactly_and_through_value_alone(stores: Stores) -> None:
    assert await stores.secrets.put(a_secret(), VALUE, set_())

    assert await stores.secrets.value(ORG, "TOKEN") == VALUE
    assert await stores.secrets.get(ORG, "TOKEN") == a_secret()
    assert await all_of(partial(stores.secrets.page, ORG)) == (a_secret(),)


async def test_an_unknown_secret_is_none(stores: Stores) -> None:
    assert await stores.secrets.value(ORG, "TOKEN") is None
    assert await stores.secrets.get(ORG, "TOKEN") is None


async def test_a_new_value_replaces_the_former_and_keeps_the_date_of_creation(stores: Stores) -> None:
    await stores.secrets.put(a_secret(at=1), "first", set_(1))
    assert not await stores.secrets.put(a_secret(at=5), "second", set_(2))

    assert await stores.secrets.value(ORG, "TOKEN") == "second"
    stored = await stores.secrets.get(ORG, "TOKEN")
    assert stored is not None
    assert (stored.created_at, stored.updated_at) == (after(1), after(5))


async def test_secrets_are_listed_newest_first_in_pages(stores: Stores) -> None:
    for number in (2, 1, 3):
        await stores.secrets.put(a_secret(f"S{number}", at=number), "value", set_(number))
    pages = await pages_of(partial(stores.secrets.page, ORG), limit=2)
    assert [[secret.name for secret in page] for page in pages] == [["S3", "S2"], ["S1"]]


@pytest.mark.requirement("C7")
async def test_a_secret_that_a_server_names_is_kept_and_the_refusal_names_the_server(stores: Stores) -> None:
    await stores.secrets.put(a_secret(), VALUE, set_())
    await stores.servers.add(a_server(config=USING), an_audit_event(2, action=AuditAction.MCP_SERVER_CREATED))

    assert await stores.secrets.users(ORG, "TOKEN") == (SecretUser(server_id=SERVER, name="tickets"),)
    assert await stores.secrets.users(ORG, "OTHER") == ()
    with pytest.raises(ServiceError) as refused:
        await stores.secrets.delete(ORG, "TOKEN", deleted())

    assert (refused.value.code, refused.value.kind) == ("secret_in_use", ErrorKind.CONFLICT)
    assert refused.value.extra == {"used_by": "tickets"}
    assert await stores.secrets.value(ORG, "TOKEN") == VALUE


@pytest.mark.requirement("C7")
async def test_a_server_is_read_back_with_the_names_of_its_secrets(stores: Stores) -> None:
    server = a_server(config=USING)
    await stores.servers.add(server, an_audit_event(2, action=AuditAction.MCP_SERVER_CREATED))
    assert await stores.servers.get(ORG, "tickets") == server


async def test_a_deleted_secret_is_gone(stores: Stores) -> None:
    await stores.secrets.put(a_secret(), VALUE, set_())
    assert await stores.secrets.delete(ORG, "TOKEN", deleted())
    assert await stores.secrets.value(ORG, "TOKEN") is None
    assert not await stores.secrets.delete(ORG, "TOKEN", deleted(10))


@pytest.mark.requirement("C5")
async def test_each_write_that_happened_stores_its_audit_entry(stores: Stores) -> None:
    await stores.secrets.put(a_secret(), VALUE, set_(1))
    await stores.secrets.put(a_secret(), VALUE, set_(2))
    await stores.secrets.delete(ORG, "TOKEN", deleted(3))
    await stores.secrets.delete(ORG, "TOKEN", deleted(4))
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (deleted(3), set_(2), set_(1))


@pytest.mark.requirement("C6")
async def test_another_organizations_secret_does_not_exist_and_its_name_is_free(stores: Stores) -> None:
    await stores.secrets.put(a_secret(), VALUE, set_())

    assert await stores.secrets.value(OTHER_ORG, "TOKEN") is None
    assert await stores.secrets.get(OTHER_ORG, "TOKEN") is None
    assert await all_of(partial(stores.secrets.page, OTHER_ORG)) == ()
    assert not await stores.secrets.delete(OTHER_ORG, "TOKEN", deleted())
    assert await stores.secrets.put(
        a_secret(organization_id=OTHER_ORG), "theirs", replace(set_(2), organization_id=OTHER_ORG)
    )
    assert await stores.secrets.value(ORG, "TOKEN") == VALUE
    server = a_server(McpServerId(numbered("mcp", 7)), organization_id=OTHER_ORG, config=USING)
    await stores.servers.add(
        server, an_audit_event(3, organization_id=OTHER_ORG, action=AuditAction.MCP_SERVER_CREATED)
    )
    assert await stores.secrets.users(ORG, "TOKEN") == ()


@pytest.mark.requirement("E7")
async def test_a_secret_that_signs_the_webhook_of_a_schedule_is_in_use_until_the_schedule_is_gone(
    stores: Stores,
) -> None:
    await stores.secrets.put(a_secret("HOOK"), "whsec_x", set_())
    hook = Webhook(url="https://example.com/hook", secret=SecretRef("HOOK"))
    await stores.schedules.add(a_schedule(webhook=hook), made(2))
    await stores.schedules.add(a_schedule(a_schedule_id(2), name="other", webhook=replace(hook, secret=None)), made(3))
    assert await stores.secrets.users(ORG, "HOOK") == (SecretUser(schedule_id=SCHEDULE, name="nightly"),)
    assert await stores.secrets.users(OTHER_ORG, "HOOK") == ()
    with pytest.raises(ServiceError) as refused:
        await stores.secrets.delete(ORG, "HOOK", deleted())
    assert (refused.value.code, refused.value.extra["used_by"]) == ("secret_in_use", "nightly")
    assert "the schedule nightly" in refused.value.detail
    await stores.schedules.delete(ORG, SCHEDULE, made(4))
    assert await stores.secrets.delete(ORG, "HOOK", deleted(10))
