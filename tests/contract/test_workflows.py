"""The contract of `WorkflowStore`, and how secrets know of the workflows that name them."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.secrets.ports import SecretUser
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, WorkflowId
from domain.secrets.secret import Secret
from domain.teams import Teams
from domain.workflows.graph import NodeDefinition, Workflow
from tests.builders import ORG, OTHER_ORG, START, after, an_audit_event, numbered
from tests.contract.paging import all_of, pages_of
from tests.contract.stores import Stores
from tests.group_builders import a_group
from tests.workflow_builders import agent, entrypoint, tool, transform, workflow

ID = WorkflowId(numbered("wfl", 1))


def a_workflow(
    *parts: NodeDefinition | str,
    number: int = 1,
    name: str = "story",
    version: int = 1,
    organization_id: OrganizationId = ORG,
    team: str | None = None,
) -> Workflow:
    return Workflow(
        id=WorkflowId(numbered("wfl", number)),
        organization_id=organization_id,
        version=version,
        definition=workflow(*(parts or (entrypoint(),)), name=name, team=team),
        created_at=after(number),
        updated_at=after(number + version),
    )


def told(number: int, action: AuditAction = AuditAction.WORKFLOW_CREATED) -> AuditEvent:
    return an_audit_event(number, action=action, resource=ID)


async def trail(stores: Stores) -> list[AuditAction]:
    return [entry.action for entry in await all_of(partial(stores.audit.page, ORG, AuditFilter()))]


@pytest.mark.requirement("P2")
async def test_a_workflow_is_in_lists_of_those_who_see_the_team_of_its_newest_version(stores: Stores) -> None:
    for number, name in enumerate(("finance", "legal"), start=1):
        made = an_audit_event(90 + number, action=AuditAction.GROUP_CREATED)
        await stores.organization_groups.add(a_group(name, number), made)
    first = a_workflow(team="finance")
    await stores.workflows.add(first, told(1))
    await stores.workflows.add(a_workflow(number=2, name="common"), told(2))

    async def listed(teams: Teams) -> list[str]:
        page = await stores.workflows.page(ORG, PageRequest(teams=teams))
        return [each.definition.name for each in page.items]

    assert await listed(frozenset({"finance"})) == await listed(None) == ["common", "story"]
    assert await listed(frozenset({"legal"})) == ["common"]
    assert await stores.workflows.get(ORG, ID) == await stores.workflows.find(ORG, "story") == first
    await stores.workflows.save(a_workflow(version=2, team="legal"), expected_version=1, audit=told(3))
    assert await listed(frozenset({"legal"})) == ["common", "story"]
    assert await listed(frozenset({"finance"})) == ["common"]
    versions = (await stores.workflows.versions(ORG, ID, PageRequest())).items
    assert [each.team for each in versions] == ["legal", "finance"]
    await stores.workflows.save(a_workflow(version=3), expected_version=2, audit=told(4))
    assert await listed(frozenset()) == ["common", "story"]


@pytest.mark.requirement("F1", "U6")
async def test_each_version_has_the_text_that_it_was_saved_with(stores: Stores) -> None:
    first = replace(a_workflow(), text="# why\nname: story\n")
    await stores.workflows.add(first, told(1))
    second = replace(a_workflow(version=2), text=None)
    await stores.workflows.save(second, expected_version=1, audit=told(2))
    newest = await stores.workflows.get(ORG, ID)
    assert newest is not None
    assert newest.text is None
    read = [await stores.workflows.version(ORG, ID, number) for number in (1, 2)]
    assert read == [first, replace(second, text=None)]
    for number in (0, 3, 2**40, -(2**40)):
        assert await stores.workflows.version(ORG, ID, number) is None
    assert await stores.workflows.version(OTHER_ORG, ID, 1) is None


@pytest.mark.requirement("F1")
async def test_lists_leave_out_the_texts_that_were_saved(stores: Stores) -> None:
    await stores.workflows.add(replace(a_workflow(), text="# why\nname: story\n"), told(1))
    for page in (
        await stores.workflows.versions(ORG, ID, PageRequest()),
        await stores.workflows.page(ORG, PageRequest()),
    ):
        assert page.items == (a_workflow(),)


@pytest.mark.requirement("F1")
async def test_a_workflow_is_read_back_as_it_was_written(stores: Stores) -> None:
    written = a_workflow(
        entrypoint(),
        agent("asked", "Ada – 🙂", input={"question": ["{{start.a}}", 1.5, None, True]}),
        tool("weather"),
        transform("end", "join(', ', @)"),
        "start -> asked",
        "asked.output -> end",
        "weather.tool -> asked.tools",
    )
    await stores.workflows.add(written, told(1))
    assert await stores.workflows.get(ORG, ID) == written
    assert await stores.workflows.find(ORG, "story") == written


@pytest.mark.requirement("C6")
async def test_a_workflow_is_its_organizations_alone(stores: Stores) -> None:
    await stores.workflows.add(a_workflow(), told(1))
    assert await stores.workflows.get(OTHER_ORG, ID) is None
    assert await stores.workflows.find(OTHER_ORG, "story") is None
    assert await all_of(partial(stores.workflows.page, OTHER_ORG)) == ()
    assert await all_of(partial(stores.workflows.versions, OTHER_ORG, ID)) == ()
    assert not await stores.workflows.delete(OTHER_ORG, ID, replace(told(2), organization_id=OTHER_ORG))
    await stores.workflows.add(
        a_workflow(number=2, organization_id=OTHER_ORG), replace(told(3), organization_id=OTHER_ORG)
    )
    assert await stores.workflows.get(ORG, ID) == a_workflow()


async def test_every_change_makes_a_version_and_the_newest_is_the_one_in_force(stores: Stores) -> None:
    first, second = a_workflow(), a_workflow(version=2, name="tale")
    third = a_workflow(entrypoint(), transform("end"), "start -> end", version=3, name="tale")
    await stores.workflows.add(first, told(1))
    await stores.workflows.save(second, expected_version=1, audit=told(2, AuditAction.WORKFLOW_UPDATED))
    await stores.workflows.save(third, expected_version=2, audit=told(3, AuditAction.WORKFLOW_UPDATED))

    assert await stores.workflows.get(ORG, ID) == third
    assert await stores.workflows.find(ORG, "tale") == third
    assert await stores.workflows.find(ORG, "story") is None
    assert await all_of(partial(stores.workflows.page, ORG)) == (third,)
    assert await pages_of(partial(stores.workflows.versions, ORG, ID), limit=2) == [(third, second), (first,)]


async def test_saving_over_a_version_one_has_not_seen_is_refused(stores: Stores) -> None:
    await stores.workflows.add(a_workflow(), told(1))
    mine = a_workflow(version=2, name="mine")
    await stores.workflows.save(mine, expected_version=1, audit=told(2, AuditAction.WORKFLOW_UPDATED))
    with pytest.raises(ServiceError) as refused:
        await stores.workflows.save(a_workflow(version=2, name="yours"), expected_version=1, audit=told(3))
    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert await stores.workflows.get(ORG, ID) == mine
    assert await trail(stores) == ["workflow.updated", "workflow.created"]


async def test_saving_a_workflow_that_is_gone_is_not_found(stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await stores.workflows.save(a_workflow(version=2), expected_version=1, audit=told(1))
    assert (refused.value.code, refused.value.kind) == ("workflow_not_found", ErrorKind.NOT_FOUND)
    assert await trail(stores) == []


async def test_a_name_is_given_once_in_an_organization(stores: Stores) -> None:
    await stores.workflows.add(a_workflow(), told(1))
    await stores.workflows.add(a_workflow(number=2, name="tale"), told(2))
    with pytest.raises(ServiceError) as added:
        await stores.workflows.add(a_workflow(number=3), told(3))
    with pytest.raises(ServiceError) as saved:
        await stores.workflows.save(a_workflow(number=2, version=2), expected_version=1, audit=told(4))
    for refused in (added, saved):
        assert (refused.value.code, refused.value.kind) == ("workflow_name_taken", ErrorKind.CONFLICT)
    assert len(await trail(stores)) == 2


async def test_workflows_are_listed_newest_first_and_pages_do_not_shift(stores: Stores) -> None:
    for number in (2, 1, 3):
        await stores.workflows.add(a_workflow(number=number, name=str(number)), told(number))
    first = await stores.workflows.page(ORG, PageRequest(limit=2))
    await stores.workflows.add(a_workflow(number=4, name="4"), told(4))
    second = await stores.workflows.page(ORG, PageRequest(limit=2, cursor=first.next_cursor))
    assert [found.definition.name for found in (*first.items, *second.items)] == ["3", "2", "1"]


async def test_a_deleted_workflow_is_out_of_use_and_its_name_is_free(stores: Stores) -> None:
    await stores.workflows.add(a_workflow(), told(1))
    assert await stores.workflows.delete(ORG, ID, told(2, AuditAction.WORKFLOW_DELETED))
    assert await stores.workflows.get(ORG, ID) is None
    assert await stores.workflows.find(ORG, "story") is None
    assert await all_of(partial(stores.workflows.page, ORG)) == ()
    assert await all_of(partial(stores.workflows.versions, ORG, ID)) == (a_workflow(),)
    assert not await stores.workflows.delete(ORG, ID, told(3, AuditAction.WORKFLOW_DELETED))
    await stores.workflows.add(a_workflow(number=2), told(4))
    assert await trail(stores) == ["workflow.created", "workflow.deleted", "workflow.created"]


@pytest.mark.requirement("C7")
async def test_a_secret_that_a_workflow_names_stays(stores: Stores) -> None:
    secret = Secret(organization_id=ORG, name="WEATHER_TOKEN", created_at=START, updated_at=START)
    await stores.secrets.put(secret, "a value", an_audit_event(1, action=AuditAction.SECRET_SET))
    await stores.workflows.add(a_workflow(entrypoint(), tool("weather")), told(2))
    assert await stores.secrets.users(ORG, "WEATHER_TOKEN") == (SecretUser(name="story", workflow_id=ID),)
    assert await stores.secrets.users(OTHER_ORG, "WEATHER_TOKEN") == ()
    gone = an_audit_event(3, action=AuditAction.SECRET_DELETED)
    with pytest.raises(ServiceError) as refused:
        await stores.secrets.delete(ORG, "WEATHER_TOKEN", gone)
    assert (refused.value.code, refused.value.extra) == ("secret_in_use", {"used_by": "story"})
    assert "the workflow story" in refused.value.detail

    without = replace(a_workflow(version=2), updated_at=after(9))
    await stores.workflows.save(without, expected_version=1, audit=told(4, AuditAction.WORKFLOW_UPDATED))
    assert await stores.secrets.users(ORG, "WEATHER_TOKEN") == ()
    assert await stores.secrets.delete(ORG, "WEATHER_TOKEN", gone)
