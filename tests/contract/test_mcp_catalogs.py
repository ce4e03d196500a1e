"""Stored catalogs of MCP servers: what each store keeps of what servers list."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.json_value import JsonObject
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection, SkippedTool
from domain.mcp.pinning import PinnedTool, pinned, pinned_tool
from tests.builders import ORG, OTHER_ORG, SERVER, a_catalog, a_definition, a_server, after, an_audit_event
from tests.contract.paging import all_of
from tests.contract.stores import Stores
from tests.contract.test_mcp_servers import created, deleted, updated


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
        rejected={"new": Rejection(by="key_admin", at=after(1), reason="Who needs it? – 🙂")},
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


async def test_a_catalog_with_the_same_definitions_replaces_the_rest_of_the_former(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    tools = (a_definition("a"), a_definition("b"))
    former = replace(a_catalog(tools=tools), quarantined={"b": None}, dormant=(a_definition("c"),))
    await stores.catalogs.save(ORG, former)
    newer = replace(former, server_name="Another", taken_at=after(9), revision=1)
    assert await stores.catalogs.save(ORG, newer, has_same_definitions=True)
    loaded = await stores.catalogs.load(ORG, SERVER)
    assert loaded == newer
    assert loaded is not None
    assert loaded.revision == 2


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


def rejected(number: int = 7) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.MCP_SERVER_TOOL_REJECTED)


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


REJECTION = Rejection(by="usr_ada", at=after(3), reason="It asks for the token.")


@pytest.mark.requirement("B13", "U6")
async def test_a_rejected_tool_stays_rejected_until_it_is_approved(stores: Stores) -> None:
    before = await with_quarantine(stores)
    assert await stores.catalogs.reject(ORG, SERVER, CHANGED, REJECTION, rejected())
    assert await the_tool(stores, "echo") == PinnedTool(definition=CHANGED, approved=ECHO, rejection=REJECTION)
    assert ((await stored(stores)).awaiting_approval, (await stored(stores)).revision) == (1, before.revision + 1)
    assert await stores.catalogs.save(ORG, replace(await stored(stores), server_name="B"), has_same_definitions=True)
    assert await stores.catalogs.save(ORG, pinned(a_catalog(tools=(CHANGED,), taken_at=after(9)), await stored(stores)))
    assert dict((await stored(stores)).rejected) == {"echo": REJECTION}
    assert await stores.catalogs.approve(ORG, SERVER, CHANGED, approved())
    assert await the_tool(stores, "echo") == PinnedTool(definition=CHANGED, approved=CHANGED)
    assert dict((await stored(stores)).rejected) == {}
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_rejected")))
    assert entries == (rejected(),)


@pytest.mark.requirement("B13", "C6", "U6")
async def test_what_does_not_wait_with_just_this_definition_is_not_rejected(stores: Stores) -> None:
    before = await with_quarantine(stores)
    assert not await stores.catalogs.reject(ORG, SERVER, ECHO, REJECTION, rejected(6))
    assert not await stores.catalogs.reject(ORG, SERVER, a_definition("other"), REJECTION, rejected(7))
    assert not await stores.catalogs.reject(OTHER_ORG, SERVER, CHANGED, REJECTION, rejected(8))
    assert (await stored(stores), (await stored(stores)).revision) == (before, before.revision)
    assert await stores.catalogs.reject(ORG, SERVER, CHANGED, REJECTION, rejected(9))
    assert not await stores.catalogs.reject(ORG, SERVER, CHANGED, replace(REJECTION, by="usr_eve"), rejected(10))
    await stores.catalogs.approve(ORG, SERVER, CHANGED, approved(11))
    assert not await stores.catalogs.reject(ORG, SERVER, CHANGED, REJECTION, rejected(12))
    assert dict((await stored(stores)).rejected) == {}
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_rejected")))
    assert entries == (rejected(9),)


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


def a_long_list(description: str, *, count: int = 600) -> tuple[McpToolDefinition, ...]:
    return tuple(a_definition(f"tool_{number:03}", description=description) for number in range(count))


@pytest.mark.requirement("B5", "S3")
async def test_a_long_list_is_replaced_by_another_long_one_and_by_a_short_one(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    lists = (a_long_list("One."), a_long_list("Two.", count=700), a_long_list("Three.", count=1), ())
    for revision, tools in enumerate(lists):
        catalog = a_catalog(tools=tools, taken_at=after(revision))
        assert await stores.catalogs.save(ORG, replace(catalog, revision=revision))
        assert await stored(stores) == catalog


@pytest.mark.requirement("B13")
async def test_a_tool_of_a_long_list_is_approved(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    assert await stores.catalogs.save(ORG, a_catalog(tools=a_long_list("One.")))
    assert await stores.catalogs.save(ORG, pinned(a_catalog(tools=a_long_list("Two.")), await stored(stores)))
    assert not await stores.catalogs.approve(OTHER_ORG, SERVER, a_long_list("Two.")[7], approved(7))
    assert await stores.catalogs.approve(ORG, SERVER, a_long_list("Two.")[7], approved(8))
    assert [tool.name for tool in (await stored(stores)).usable] == ["tool_007"]


async def test_a_long_list_stays_when_the_rest_of_its_catalog_changes(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    former = a_catalog(tools=a_long_list("One."))
    await stores.catalogs.save(ORG, former)
    newer = replace(former, server_name="Another", taken_at=after(9), revision=1)
    assert await stores.catalogs.save(ORG, newer, has_same_definitions=True)
    assert await stored(stores) == newer


@pytest.mark.requirement("B13")
async def test_a_long_list_is_stored_only_in_the_place_of_the_one_it_was_made_from(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    assert await stores.catalogs.save(ORG, a_catalog(tools=a_long_list("One.")))
    assert not await stores.catalogs.save(ORG, a_catalog(tools=a_long_list("Two.")), (quarantined(),))
    assert await stored(stores) == a_catalog(tools=a_long_list("One."))
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter(action="mcp_server.tool_quarantined"))) == ()


async def test_a_server_with_a_long_list_is_deleted_only_by_its_organization(stores: Stores) -> None:
    await stores.servers.add(a_server(), created(1))
    await stores.catalogs.save(ORG, a_catalog(tools=a_long_list("One.")))
    assert not await stores.servers.delete(OTHER_ORG, SERVER, deleted(2))
    assert await stored(stores) == a_catalog(tools=a_long_list("One."))
    assert await stores.servers.delete(ORG, SERVER, deleted(3))


async def test_a_long_list_of_a_server_that_was_removed_meanwhile_is_dropped(stores: Stores) -> None:
    assert await stores.catalogs.save(ORG, a_catalog(tools=a_long_list("One.")), (quarantined(),))
    assert await stores.catalogs.load(ORG, SERVER) is None
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == ()
