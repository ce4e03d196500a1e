"""The contract of `QuarantineCounts`: what waits for a person in the present lists of an
organization's servers."""

from dataclasses import replace

import pytest

from domain.ids import McpServerId
from domain.mcp.catalog import Rejection
from tests.builders import ORG, OTHER_ORG, SERVER, a_catalog, a_definition, a_server, after, numbered
from tests.contract.stores import Stores
from tests.contract.test_giving_to_groups import grouped
from tests.contract.test_mcp_servers import created

pytestmark = pytest.mark.requirement("U6")
OTHER_SERVER = McpServerId(numbered("mcp", 2))


async def test_tools_wait_that_are_listed_in_quarantine_and_not_rejected(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    quiet = a_server(OTHER_SERVER, slug="quiet")
    await stores.servers.add(quiet, created(2))
    await stores.catalogs.save(ORG, replace(a_catalog(tools=(a_definition("a"),)), server_id=OTHER_SERVER))
    tools = tuple(a_definition(name) for name in ("approved", "changed", "new", "refused"))
    catalog = replace(
        a_catalog(tools=tools),
        quarantined={"changed": a_definition("changed", description="As it was."), "new": None, "refused": None},
        rejected={"refused": Rejection(by="key_admin", at=after(1), reason="No.")},
        dormant=(a_definition("away"),),
    )
    assert catalog.awaiting_approval == 2
    await stores.catalogs.save(ORG, catalog)
    assert await stores.quarantine_counts.awaiting(ORG) == {SERVER: 2}
    assert await stores.quarantine_counts.awaiting(OTHER_ORG) == {}


async def test_tools_of_servers_that_are_not_seen_are_not_counted(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    await grouped(stores)
    ledger = a_server(OTHER_SERVER, slug="ledger")
    await stores.servers.add(replace(ledger, config=replace(ledger.config, team="finance")), created(2))
    for server_id in (SERVER, OTHER_SERVER):
        catalog = a_catalog(tools=(a_definition("new"),))
        await stores.catalogs.save(ORG, replace(catalog, server_id=server_id, quarantined={"new": None}))
    seen = {teams: await stores.quarantine_counts.awaiting(ORG, teams=teams) for teams in (frozenset({"sales"}), None)}
    assert seen == {frozenset({"sales"}): {SERVER: 1}, None: {SERVER: 1, OTHER_SERVER: 1}}


async def test_a_long_list_that_was_stored_in_pieces_is_counted_once(stores: Stores) -> None:
    await stores.servers.add(a_server(), created())
    names = [f"tool_{number:03}" for number in range(300)]
    catalog = replace(a_catalog(tools=tuple(map(a_definition, names))), quarantined=dict.fromkeys(names))
    assert await stores.catalogs.save(ORG, catalog)
    assert await stores.quarantine_counts.awaiting(ORG) == {SERVER: 300}
    assert await stores.catalogs.save(ORG, replace(catalog, revision=1, quarantined=dict.fromkeys(names[:7])))
    assert await stores.quarantine_counts.awaiting(ORG) == {SERVER: 7}
