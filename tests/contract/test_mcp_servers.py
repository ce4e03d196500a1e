"""The contracts of `McpServerStore` and `McpCatalogStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import McpServerId
from domain.json_value import JsonObject
from domain.mcp.catalog import McpCatalog, McpToolDefinition, SkippedTool
from domain.mcp.installation import Installation
from domain.mcp.pinning import PinnedTool, pinned, pinned_tool
from domain.mcp.server import (
    ConnectionLoss,
    ElicitationPolicy,
    Isolation,
    McpServer,
    McpServerConfig,
    McpServerKind,
    OutputValidation,
    PassingPolicy,
)
from domain.rate_limit import RateLimit
from tests.builders import ORG, OTHER_ORG, SERVER, a_catalog, a_definition, a_server, after, an_audit_event, numbered
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
    installation = Installation(version="2025.4.25", location="org/server/generation", installed_at=after(3))
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


@pytest.mark.requirement("B5")
async def test_a_catalog_with_every_field_set_is_read_back_as_it_was(stores: Stores) -> None:
    catalog = McpCatalog(
        server_id=SERVER,
        server_version=3,
        protocol_version="2026-07-28",
        server_name="Files – 🙂",
        instructions="Read before you write.",
        tools=(
            McpToolDefinition(
                name="read.file",
                description="",
                input_schema={"type": "object", "properties": {"ümlaut": {"enum": [1, 1.5, None, True, "x"]}}},
                output_schema={"type": "object"},
                read_only_hint=True,
                idempotent_hint=True,
                destructive_hint=False,
            ),
            a_definition("changed"),
            a_definition("new"),
            replace(a_definition("zip"), display={"title": "Zip", "icons": [{"src": "https://a.example"}]}),
        ),
        skipped=(SkippedTool(name="bad name", reason="the name is not legal"),),
        taken_at=after(0.000001),
        quarantined={"changed": a_definition("changed", description="As it was."), "new": None},
        dormant=(a_definition("away"), a_definition("gone")),
    )
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, catalog)
    assert await stores.catalogs.load(ORG, SERVER) == catalog


async def test_a_server_that_was_never_listed_has_no_catalog(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    assert await stores.catalogs.load(ORG, SERVER) is None


async def test_a_newer_catalog_replaces_the_former_whole(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, a_catalog(tools=(a_definition("a"), a_definition("b"))))
    newer = a_catalog(tools=(a_definition("b", description="new"), a_definition("c")), taken_at=after(9))
    assert await stores.catalogs.save(ORG, replace(newer, revision=1))
    assert await stores.catalogs.load(ORG, SERVER) == newer


async def test_a_catalog_outlives_a_change_of_its_server(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, a_catalog())
    await stores.servers.save(a_server(version=2), expected_version=1, audit=updated())
    assert await stores.catalogs.load(ORG, SERVER) == a_catalog()


async def test_a_catalog_of_a_server_that_was_removed_meanwhile_is_dropped(stores: Stores) -> None:
    await stores.servers.add(a_server(), created(1))
    await stores.servers.delete(ORG, SERVER, deleted(2))
    await stores.catalogs.save(ORG, a_catalog())
    assert await stores.catalogs.load(ORG, SERVER) is None


@pytest.mark.requirement("C6")
async def test_a_catalog_is_not_seen_nor_replaced_from_another_organization(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, a_catalog())
    assert await stores.catalogs.load(OTHER_ORG, SERVER) is None
    await stores.catalogs.save(OTHER_ORG, replace(a_catalog(tools=()), revision=1))
    assert await stores.catalogs.load(ORG, SERVER) == a_catalog()


ECHO = a_definition("echo")
CHANGED = a_definition("echo", description="Says it to everyone.")
NEW = a_definition("zip")


def quarantined(number: int = 5) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_TOOL_QUARANTINED)


def approved(number: int = 6) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_TOOL_APPROVED)


async def stored(stores: Stores) -> McpCatalog:
    found = await stores.catalogs.load(ORG, SERVER)
    assert found is not None
    return found


async def with_quarantine(stores: Stores) -> McpCatalog:
    """A server whose tool `echo` has changed and whose tool `zip` is new."""
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, a_catalog(tools=(ECHO,)))
    assert await stores.catalogs.save(ORG, pinned(a_catalog(tools=(CHANGED, NEW)), await stored(stores)))
    return await stored(stores)


@pytest.mark.requirement("B13")
async def test_a_catalog_is_stored_only_in_the_place_of_the_one_it_was_made_from(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    assert await stores.catalogs.save(ORG, a_catalog())
    first = await stored(stores)
    other = a_catalog(tools=(CHANGED,))

    assert not await stores.catalogs.save(ORG, other, (quarantined(5),))
    assert not await stores.catalogs.save(ORG, replace(other, revision=first.revision + 1))
    assert await stored(stores) == a_catalog()
    assert await stores.catalogs.save(ORG, replace(other, revision=first.revision), (quarantined(6),))
    assert not await stores.catalogs.save(ORG, replace(other, revision=first.revision))

    assert await stored(stores) == other
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_quarantined")))
    assert entries == (quarantined(6),)


@pytest.mark.requirement("B13")
async def test_what_is_pinned_is_read_back_as_it_was_and_stands_for_the_same_definition(stores: Stores) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"n": {"default": 1.0, "enum": [1, True, None, -0.0, 1e22, 12345678901234567890]}, "ü": {}},
    }
    tool = replace(ECHO, description="One\nTwo\t– 🙂 \ud800", input_schema=schema, destructive_hint=True)
    await stores.servers.add(a_server(), created())
    await stores.catalogs.save(ORG, a_catalog(tools=(tool,)))
    assert [entry.digest for entry in (await stored(stores)).tools] == [tool.digest]


async def the_tool(stores: Stores, name: str) -> PinnedTool | None:
    return pinned_tool(await stored(stores), name)


@pytest.mark.requirement("B13")
async def test_one_tool_is_found_with_what_is_approved_of_it(stores: Stores) -> None:
    catalog = await with_quarantine(stores)
    assert await the_tool(stores, "echo") == PinnedTool(definition=CHANGED, approved=ECHO)
    assert await the_tool(stores, "zip") == PinnedTool(definition=NEW, approved=None)
    assert await the_tool(stores, "other") is None
    await stores.catalogs.save(ORG, pinned(a_catalog(tools=()), catalog))
    assert await the_tool(stores, "echo") is None


@pytest.mark.requirement("B13")
async def test_an_approved_tool_leaves_quarantine_and_the_others_stay(stores: Stores) -> None:
    before = await with_quarantine(stores)
    assert await stores.catalogs.approve(ORG, SERVER, CHANGED, approved())
    after_it = await stored(stores)
    assert dict(after_it.quarantined) == {"zip": None}
    assert after_it.usable == (CHANGED,)
    assert after_it.revision == before.revision + 1
    assert await the_tool(stores, "echo") == PinnedTool(definition=CHANGED, approved=CHANGED)
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_approved")))
    assert entries == (approved(),)


@pytest.mark.requirement("B13", "C6")
async def test_what_is_not_in_quarantine_with_just_this_definition_is_not_approved(stores: Stores) -> None:
    before = await with_quarantine(stores)
    assert not await stores.catalogs.approve(ORG, SERVER, a_definition("echo", description="Earlier."), approved(6))
    assert not await stores.catalogs.approve(ORG, SERVER, ECHO, approved(7))
    assert not await stores.catalogs.approve(ORG, SERVER, a_definition("other"), approved(8))
    assert not await stores.catalogs.approve(OTHER_ORG, SERVER, CHANGED, approved(9))
    assert (await stored(stores), (await stored(stores)).revision) == (before, before.revision)
    await stores.catalogs.approve(ORG, SERVER, CHANGED, approved(10))
    assert not await stores.catalogs.approve(ORG, SERVER, CHANGED, approved(11))
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_approved")))
    assert entries == (approved(10),)


@pytest.mark.requirement("B13")
async def test_what_is_listed_while_a_tool_is_approved_does_not_undo_that(stores: Stores) -> None:
    before = await with_quarantine(stores)
    listed = pinned(a_catalog(tools=(CHANGED,), taken_at=after(9)), before)
    await stores.catalogs.approve(ORG, SERVER, CHANGED, approved())
    assert not await stores.catalogs.save(ORG, listed)
    assert (await stored(stores)).usable == (CHANGED,)


async def test_entries_about_a_server_that_is_gone_are_not_written(stores: Stores) -> None:
    assert await stores.catalogs.save(ORG, a_catalog(), (quarantined(),))
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == ()
