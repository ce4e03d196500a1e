"""The contracts of `McpServerStore` and `McpCatalogStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import McpServerId
from domain.mcp.behavior import ConnectionLoss, ElicitationPolicy, OutputValidation, PassingPolicy
from domain.mcp.declared_tool import DeclaredTool
from domain.mcp.installation import Installation
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from domain.rate_limit import RateLimit
from tests.builders import ORG, OTHER_ORG, SERVER, a_catalog, a_server, after, an_audit_event, numbered
from tests.contract.paging import all_of
from tests.contract.stores import Stores


def server_number(number: int) -> McpServer:
    return a_server(McpServerId(numbered("mcp", number)), slug=f"server-{number}", created_at=after(number))


def created(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_CREATED)


def updated(number: int = 2) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_UPDATED)


def deleted(number: int = 3) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_DELETED)


STARTED = McpServerConfig(
    slug="files",
    kind=McpServerKind.CUSTOM,
    command="python3",
    args=("-m", "files", "--root=/srv/a b"),
    env={"TOKEN": "s3cret–🙂", "EMPTY": ""},
    trusted=True,
    isolation=Isolation.THREAD,
    output_validation=OutputValidation.ENFORCE,
    timeout_s=2.5,
    idle_timeout_s=60.0,
    max_response_bytes=1024,
    max_concurrency=1,
    on_connection_loss=ConnectionLoss.UNREGISTER,
    elicitation=ElicitationPolicy.ASK,
    sampling=PassingPolicy.PASS,
    rate_limit=RateLimit(calls=3, per_s=0.5),
    enabled=False,
)
REMOTE = McpServerConfig(
    slug="weather",
    kind=McpServerKind.HTTP,
    url="https://mcp.example.org/mcp?v=1",
    headers={"Authorization": "Bearer s3cret", "X-Two": "2"},
    isolation=Isolation.SHARED,
    output_validation=OutputValidation.OFF,
    declared_tools=(
        DeclaredTool(
            name="look",
            description="Looks.",
            parameters={"type": "object", "properties": {"n": {"enum": [1, None]}}},
            output_schema={"type": "object"},
        ),
        DeclaredTool(name="see", description="Sees.", parameters={"type": "object"}),
    ),
)
PACKAGED = McpServerConfig(
    slug="database",
    kind=McpServerKind.PYTHON,
    package="mcp-server-sqlite mcp<2",
    version="2025.4.25",
    command="mcp-server-sqlite",
    args=("--db-path", "/srv/data.db"),
)
COPIED = McpServerConfig(slug="own", kind=McpServerKind.CUSTOM, path="/srv/own", command="run.sh")


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("config", [STARTED, REMOTE, PACKAGED, COPIED], ids=["started", "remote", "packaged", "copied"])
async def test_a_server_with_every_field_set_is_read_back_as_it_was_by_id_and_by_slug(
    stores: Stores, config: McpServerConfig
) -> None:
    server = a_server(config=config)
    await stores.servers.add(server, created())
    assert await stores.servers.get(ORG, SERVER) == server
    assert await stores.servers.get(ORG, config.slug) == server
    assert await all_of(partial(stores.servers.page, ORG)) == (server,)


@pytest.mark.requirement("B2")
async def test_what_is_installed_is_kept_with_its_server_until_it_is_taken_away(stores: Stores) -> None:
    server = a_server(config=PACKAGED)
    installation = Installation(
        version="2025.4.25", location="org/server/generation", installed_at=after(3), lock=b"\x00locked"
    )
    await stores.servers.add(server, created())

    installed = replace(server, version=2, installation=installation)
    await stores.servers.save(installed, expected_version=1, audit=updated(2))
    assert await stores.servers.get(ORG, SERVER) == installed
    assert await all_of(partial(stores.servers.page, ORG)) == (installed,)

    uninstalled = replace(server, version=3)
    await stores.servers.save(uninstalled, expected_version=2, audit=updated(3))
    assert await stores.servers.get(ORG, SERVER) == uninstalled


async def test_there_is_nothing_until_any_organization_has_a_server(stores: Stores) -> None:
    assert await stores.servers.is_empty()
    await stores.servers.add(a_server(organization_id=OTHER_ORG), replace(created(), organization_id=OTHER_ORG))
    assert not await stores.servers.is_empty()
    await stores.servers.delete(OTHER_ORG, SERVER, replace(deleted(), organization_id=OTHER_ORG))
    assert await stores.servers.is_empty()


async def test_an_unknown_server_is_none(stores: Stores) -> None:
    assert await stores.servers.get(ORG, SERVER) is None
    assert await stores.servers.get(ORG, "files") is None


async def test_a_saved_change_replaces_the_server(stores: Stores) -> None:
    await stores.servers.add(a_server(config=STARTED), created())
    changed = a_server(config=replace(STARTED, slug="archive", env={}), version=2, updated_at=after(5))
    await stores.servers.save(changed, expected_version=1, audit=updated())
    assert await stores.servers.get(ORG, SERVER) == changed
    assert await stores.servers.get(ORG, "archive") == changed
    assert await stores.servers.get(ORG, "files") is None


async def test_saving_over_a_version_one_has_not_seen_is_refused(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    await stores.servers.save(a_server(version=2), expected_version=1, audit=updated())

    with pytest.raises(ServiceError) as refused:
        await stores.servers.save(a_server(version=2, slug="mine"), expected_version=1, audit=updated(3))

    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert await stores.servers.get(ORG, SERVER) == a_server(version=2)


async def test_saving_a_server_that_is_gone_is_not_found(stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await stores.servers.save(a_server(version=2), expected_version=1, audit=updated())
    assert (refused.value.code, refused.value.kind) == ("mcp_server_not_found", ErrorKind.NOT_FOUND)


async def test_a_slug_is_given_once_in_an_organization(stores: Stores) -> None:
    await stores.servers.add(server_number(1), created(1))
    await stores.servers.add(server_number(2), created(2))

    with pytest.raises(ServiceError) as added:
        await stores.servers.add(a_server(McpServerId(numbered("mcp", 3)), slug="server-1"), created(3))
    renamed = a_server(server_number(2).id, slug="server-1", version=2)
    with pytest.raises(ServiceError) as saved:
        await stores.servers.save(renamed, expected_version=1, audit=updated(4))

    for refused in (added, saved):
        assert (refused.value.code, refused.value.kind) == ("mcp_server_slug_taken", ErrorKind.CONFLICT)
    assert await all_of(partial(stores.servers.page, ORG)) == (server_number(2), server_number(1))


async def test_servers_are_listed_newest_first_and_pages_do_not_shift(stores: Stores) -> None:
    for number in (2, 1, 3):
        await stores.servers.add(server_number(number), created(number))
    first = await stores.servers.page(ORG, PageRequest(limit=2))
    await stores.servers.add(server_number(4), created(4))
    second = await stores.servers.page(ORG, PageRequest(limit=2, cursor=first.next_cursor))
    assert (*first.items, *second.items) == (server_number(3), server_number(2), server_number(1))
    assert second.next_cursor is None


async def test_a_deleted_server_is_gone_with_its_catalog_and_its_slug_is_free(stores: Stores) -> None:
    await stores.servers.add(a_server(), created(1))
    await stores.catalogs.save(ORG, a_catalog())

    assert await stores.servers.delete(ORG, SERVER, deleted(2))

    assert await stores.servers.get(ORG, SERVER) is None
    assert await stores.servers.get(ORG, "files") is None
    assert await stores.catalogs.load(ORG, SERVER) is None
    assert not await stores.servers.delete(ORG, SERVER, deleted(3))
    successor = a_server(McpServerId(numbered("mcp", 2)))
    await stores.servers.add(successor, created(4))
    assert await stores.servers.get(ORG, "files") == successor
    assert await stores.catalogs.load(ORG, successor.id) is None


@pytest.mark.requirement("C5")
async def test_each_write_that_happened_stores_its_audit_entry(stores: Stores) -> None:
    await stores.servers.add(a_server(), created(1))
    await stores.servers.save(a_server(version=2), expected_version=1, audit=updated(2))
    with pytest.raises(ServiceError):
        await stores.servers.save(a_server(version=2), expected_version=1, audit=updated(3))
    await stores.servers.delete(ORG, SERVER, deleted(4))
    await stores.servers.delete(ORG, SERVER, deleted(5))
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter()))
    assert entries == (deleted(4), updated(2), created(1))


@pytest.mark.requirement("C6")
async def test_another_organizations_server_does_not_exist_and_its_slug_is_free(stores: Stores) -> None:
    await stores.servers.add(a_server(), created(1))

    assert await stores.servers.get(OTHER_ORG, SERVER) is None
    assert await stores.servers.get(OTHER_ORG, "files") is None
    assert await all_of(partial(stores.servers.page, OTHER_ORG)) == ()
    assert not await stores.servers.delete(OTHER_ORG, SERVER, deleted())
    theirs = a_server(McpServerId(numbered("mcp", 2)), organization_id=OTHER_ORG)
    await stores.servers.add(theirs, replace(created(3), organization_id=OTHER_ORG))
    assert await stores.servers.get(OTHER_ORG, "files") == theirs
    assert await stores.servers.get(ORG, "files") == a_server()
