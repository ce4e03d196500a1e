"""The contract of all stores about giving things to a group that may be deleted meanwhile."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

import pytest

from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError
from domain.identity.organization_group import OrganizationGroup
from domain.ids import GroupId, WorkflowId, WorkflowRunId
from domain.workflows.graph import Workflow
from tests.builders import ORG, START, a_server, a_thread, an_agent, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.contract.test_provisioning import a_group
from tests.people_builders import a_provider
from tests.refusals import refused
from tests.workflow_builders import a_workflow_run, entrypoint, workflow

pytestmark = pytest.mark.requirement("P2")

TEAM = "finance"
GROUP = GroupId(numbered("grp", 1))
ROUNDS = 8
STORY = Workflow(
    id=WorkflowId(numbered("wfl", 1)),
    organization_id=ORG,
    version=1,
    definition=workflow(entrypoint(), name="story"),
    created_at=START,
    updated_at=START,
)
STORY_OF_TEAM = replace(STORY, definition=replace(STORY.definition, team=TEAM))
RUN = replace(a_workflow_run(id=WorkflowRunId(numbered("wfr", 1))), workflow_id=STORY.id, created_at=START)


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


async def test_no_workflow_is_given_to_a_group_that_is_gone_and_no_run_of_one_started_for_it(stores: Stores) -> None:
    with refused("team_gone"):
        await stores.workflows.add(STORY_OF_TEAM, audit(1))
    await stores.workflows.add(STORY, audit(2))
    with refused("team_gone"):
        await stores.workflows.save(replace(STORY_OF_TEAM, version=2), expected_version=1, audit=audit(3))
    with refused("team_gone"):
        await stores.workflow_runs.start(replace(RUN, team=TEAM), audit(4))
    assert await stores.workflow_runs.get(ORG, RUN.id) is None
    await grouped(stores)
    await stores.workflows.save(replace(STORY_OF_TEAM, version=2), expected_version=1, audit=audit(5))
    await stores.workflow_runs.start(replace(RUN, team=TEAM), audit(6))
    with refused("group_owns"):
        await stores.organization_groups.delete(ORG, GROUP, audit(7))


async def test_a_workflow_of_a_group_that_its_directory_deleted_is_saved_and_run_as_before(stores: Stores) -> None:
    await stores.identity_providers.add(a_provider(), audit(90))
    await stores.groups.add_group(a_group(name=TEAM), audit(91))
    await stores.workflows.add(STORY_OF_TEAM, audit(1))
    assert await stores.groups.delete_group(a_provider(), GROUP, audit(2))
    await stores.workflows.save(replace(STORY_OF_TEAM, version=2), expected_version=1, audit=audit(3))
    run = await stores.workflow_runs.start(replace(RUN, team=TEAM), audit(4))
    assert run.team == TEAM


async def succeeded(doing: Awaitable[object]) -> bool:
    """False if the other one came first. Raises every other error."""
    try:
        await doing
    except ServiceError as error:
        if error.code not in ("team_gone", "group_owns"):
            raise
        return False
    return True
