"""The contract of all stores about giving things to a group that may be deleted meanwhile."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

import pytest

from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError
from domain.identity.organization_group import OrganizationGroup
from domain.ids import GroupId
from tests.builders import ORG, START, a_server, a_thread, an_agent, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P2")

TEAM = "finance"
GROUP = GroupId(numbered("grp", 1))
ROUNDS = 8


def audit(number: int) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.GROUP_UPDATED)


async def grouped(stores: Stores, number: int = 1) -> GroupId:
    group_id = GroupId(numbered("grp", number))
    group = OrganizationGroup(id=group_id, organization_id=ORG, name=TEAM, created_at=START, changed_at=START)
    await stores.organization_groups.add(group, audit(100 + number))
    return group_id


async def test_nothing_is_given_to_a_group_that_is_gone(stores: Stores) -> None:
    agent, server = an_agent(), a_server()
    of_team = replace(agent, config=replace(agent.config, team=TEAM))
    server_of_team = replace(server, config=replace(server.config, team=TEAM))
    with refused("team_gone"):
        await stores.agents.add(of_team, audit(1))
    with refused("team_gone"):
        await stores.servers.add(server_of_team, audit(2))
    with refused("team_gone"):
        await stores.threads.add(replace(a_thread(), team=TEAM))
    await stores.agents.add(agent, audit(3))
    await stores.servers.add(server, audit(4))
    with refused("team_gone"):
        await stores.agents.save(replace(of_team, version=2), expected_version=1, audit=audit(5))
    with refused("team_gone"):
        await stores.servers.save(replace(server_of_team, version=2), expected_version=1, audit=audit(6))
    await grouped(stores)
    await stores.agents.save(replace(of_team, version=2), expected_version=1, audit=audit(7))
    await stores.servers.save(replace(server_of_team, version=2), expected_version=1, audit=audit(8))
    await stores.threads.add(replace(a_thread(), team=TEAM))
    with refused("group_owns"):
        await stores.organization_groups.delete(ORG, GROUP, audit(9))


async def test_what_is_given_to_a_group_while_it_is_deleted_does_not_keep_its_name(stores: Stores) -> None:
    agent = an_agent()
    await stores.agents.add(agent, audit(1))
    version = 1
    for number in range(1, ROUNDS + 1):
        group_id = await grouped(stores, number)
        given = replace(agent, version=version + 1, config=replace(agent.config, team=TEAM))
        is_given, is_deleted = await asyncio.gather(
            succeeded(stores.agents.save(given, expected_version=version, audit=audit(200 + number))),
            succeeded(stores.organization_groups.delete(ORG, group_id, audit(300 + number))),
        )
        assert is_given != is_deleted, "one of them came first, and the other one knows"
        if is_given:
            version += 2
            taken = replace(agent, version=version)
            await stores.agents.save(taken, expected_version=version - 1, audit=audit(400 + number))
            assert await stores.organization_groups.delete(ORG, group_id, audit(500 + number))


async def succeeded(doing: Awaitable[object]) -> bool:
    """False if the other one came first. Raises every other error."""
    try:
        await doing
    except ServiceError as error:
        if error.code not in ("team_gone", "group_owns"):
            raise
        return False
    return True
