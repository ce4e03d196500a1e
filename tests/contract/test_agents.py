"""The contract of `AgentStore`."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.agents.agent import Agent
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import AgentId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import CacheTtl, Effort, ModelSettings
from domain.tools.capabilities import ToolType
from tests.builders import AGENT, ORG, OTHER_ORG, RUN, after, an_agent, an_audit_event, numbered
from tests.contract.paging import all_of, pages_of
from tests.contract.run_steps import finish_step, start, start_and_claim, start_and_suspend
from tests.contract.stores import Stores
from tests.contract.test_giving_to_groups import TEAM, grouped


def agent_number(number: int) -> Agent:
    return an_agent(AgentId(numbered("agt", number)), name=f"agent {number}", created_at=after(number))


def created(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.AGENT_CREATED, resource=AGENT)


def updated(number: int = 2) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.AGENT_UPDATED, resource=AGENT)


def deleted(number: int = 3) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.AGENT_DELETED, resource=AGENT)


async def audit_of(stores: Stores) -> tuple[AuditEvent, ...]:
    return await all_of(partial(stores.audit.page, ORG, AuditFilter()))


@pytest.mark.requirement("C1")
async def test_an_agent_with_every_field_set_is_read_back_as_it_was(stores: Stores) -> None:
    agent = an_agent(
        name="Ada's – agent",
        fallback_models=("openai:gpt-5-mini", "anthropic:claude"),
        instructions="Zeile 1\nZeile 2 🙂",
        tools=(ToolType.WEBSITE_CONTENT, ToolType.CODE_EXECUTION),
        mcp_servers=("files", "clock"),
        tool_allowlist=("mcp__files__*", "website_content"),
        limits=LimitSettings(max_turns=3, max_cost_usd=Decimal("0.123456789"), timeout_s=12.5),
        enabled=False,
        created_at=after(1.000001),
    )
    settings = ModelSettings(
        effort=Effort.HIGH, stop=("\n", "END"), cache_ttl=CacheTtl.ONE_HOUR, extra_body={"top_k": 3, "a": [{"b": None}]}
    )
    config = replace(
        agent.config,
        description="Finds things.",
        agents=("clerk", "writer"),
        model_settings=settings,
        output_schema={"type": "object", "properties": {"b": {}, "a": {"enum": [None, 1.5]}}},
    )
    agent = replace(agent, config=config)
    await stores.agents.add(agent, created())
    assert await stores.agents.get(ORG, AGENT) == agent
    assert await stores.agents.find(ORG, "Ada's – agent") == agent


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("allowlist", [None, ()])
async def test_an_absent_allowlist_and_an_empty_one_stay_different(
    stores: Stores, allowlist: tuple[str, ...] | None
) -> None:
    await stores.agents.add(an_agent(tool_allowlist=allowlist), created())
    agent = await stores.agents.get(ORG, AGENT)
    assert agent is not None
    assert agent.config.tool_allowlist == allowlist


async def test_an_unknown_agent_is_none_by_id_and_by_name(stores: Stores) -> None:
    assert await stores.agents.get(ORG, AGENT) is None
    assert await stores.agents.find(ORG, "researcher") is None
    assert await all_of(partial(stores.agents.versions, ORG, AGENT)) == ()


@pytest.mark.requirement("C1")
async def test_every_change_makes_a_version_and_the_newest_is_the_one_in_force(stores: Stores) -> None:
    first = an_agent()
    second = an_agent(version=2, instructions="Answer at length.", updated_at=after(10))
    third = an_agent(version=3, name="writer", updated_at=after(20))
    await stores.agents.add(first, created())
    await stores.agents.save(second, expected_version=1, audit=updated(2))
    await stores.agents.save(third, expected_version=2, audit=updated(3))

    assert await stores.agents.get(ORG, AGENT) == third
    assert await stores.agents.find(ORG, "writer") == third
    assert await stores.agents.find(ORG, "researcher") is None
    assert await all_of(partial(stores.agents.page, ORG)) == (third,)
    assert await pages_of(partial(stores.agents.versions, ORG, AGENT), limit=2) == [(third, second), (first,)]


@pytest.mark.requirement("C1")
async def test_saving_over_a_version_one_has_not_seen_is_refused(stores: Stores) -> None:
    await stores.agents.add(an_agent(), created())
    mine = an_agent(version=2, instructions="mine")
    await stores.agents.save(mine, expected_version=1, audit=updated(2))

    with pytest.raises(ServiceError) as refused:
        await stores.agents.save(an_agent(version=2, instructions="yours"), expected_version=1, audit=updated(3))

    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    assert await stores.agents.get(ORG, AGENT) == mine
    assert [entry.action for entry in await audit_of(stores)] == ["agent.updated", "agent.created"]


async def test_saving_an_agent_that_is_gone_is_not_found(stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await stores.agents.save(an_agent(version=2), expected_version=1, audit=updated())
    assert (refused.value.code, refused.value.kind) == ("agent_not_found", ErrorKind.NOT_FOUND)
    assert await audit_of(stores) == ()


async def test_a_name_is_given_once_in_an_organization(stores: Stores) -> None:
    await stores.agents.add(agent_number(1), created(1))
    await stores.agents.add(agent_number(2), created(2))

    with pytest.raises(ServiceError) as added:
        await stores.agents.add(an_agent(AgentId(numbered("agt", 3)), name="agent 1"), created(3))
    renamed = an_agent(agent_number(2).id, name="agent 1", version=2)
    with pytest.raises(ServiceError) as saved:
        await stores.agents.save(renamed, expected_version=1, audit=updated(4))

    for refused in (added, saved):
        assert (refused.value.code, refused.value.kind) == ("agent_name_taken", ErrorKind.CONFLICT)
    assert await all_of(partial(stores.agents.page, ORG)) == (agent_number(2), agent_number(1))
    assert len(await audit_of(stores)) == 2


async def test_a_former_name_of_a_renamed_agent_is_free(stores: Stores) -> None:
    await stores.agents.add(agent_number(1), created(1))
    renamed = an_agent(agent_number(1).id, name="renamed", version=2, created_at=after(1))
    await stores.agents.save(renamed, expected_version=1, audit=updated(2))
    other = replace(agent_number(2), config=agent_number(1).config)
    await stores.agents.add(other, created(3))
    assert await stores.agents.find(ORG, "agent 1") == other


async def test_agents_are_listed_newest_first_and_pages_do_not_shift(stores: Stores) -> None:
    for number in (2, 1, 3):
        await stores.agents.add(agent_number(number), created(number))
    first = await stores.agents.page(ORG, PageRequest(limit=2))
    await stores.agents.add(agent_number(4), created(4))
    second = await stores.agents.page(ORG, PageRequest(limit=2, cursor=first.next_cursor))
    assert (*first.items, *second.items) == (agent_number(3), agent_number(2), agent_number(1))
    assert second.next_cursor is None


async def test_a_deleted_agent_is_out_of_use_its_versions_stay_and_its_name_is_free(stores: Stores) -> None:
    await stores.agents.add(an_agent(), created(1))
    await stores.agents.save(an_agent(version=2), expected_version=1, audit=updated(2))

    assert await stores.agents.delete(ORG, AGENT, deleted(3))

    assert await stores.agents.get(ORG, AGENT) is None
    assert await stores.agents.find(ORG, "researcher") is None
    assert await all_of(partial(stores.agents.page, ORG)) == ()
    versions = await all_of(partial(stores.agents.versions, ORG, AGENT))
    assert versions == (an_agent(version=2), an_agent(version=1))
    successor = an_agent(AgentId(numbered("agt", 2)))
    await stores.agents.add(successor, created(4))
    assert await stores.agents.find(ORG, "researcher") == successor


async def test_a_deleted_agent_cannot_be_saved_or_deleted_again(stores: Stores) -> None:
    await stores.agents.add(an_agent(), created(1))
    await stores.agents.delete(ORG, AGENT, deleted(2))

    assert not await stores.agents.delete(ORG, AGENT, deleted(3))
    with pytest.raises(ServiceError) as refused:
        await stores.agents.save(an_agent(version=2), expected_version=1, audit=updated(4))
    assert refused.value.kind is ErrorKind.NOT_FOUND
    assert [entry.action for entry in await audit_of(stores)] == ["agent.deleted", "agent.created"]


@pytest.mark.parametrize("state", ["queued", "in_progress", "requires_action"])
async def test_an_agent_with_an_unfinished_run_cannot_be_deleted(run_stores: Stores, state: str) -> None:
    match state:
        case "queued":
            await start(run_stores)
        case "in_progress":
            await start_and_claim(run_stores)
        case _:
            await start_and_suspend(run_stores)

    with pytest.raises(ServiceError) as refused:
        await run_stores.agents.delete(ORG, AGENT, deleted())

    assert (refused.value.code, refused.value.kind) == ("agent_busy", ErrorKind.CONFLICT)
    assert refused.value.extra == {"run_id": RUN}
    assert await run_stores.agents.get(ORG, AGENT) == an_agent()


async def test_an_agent_whose_runs_have_ended_can_be_deleted_and_its_runs_stay(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await run_stores.agents.delete(ORG, AGENT, deleted())
    assert await run_stores.runs.get(ORG, RUN) is not None


@pytest.mark.requirement("C5")
async def test_each_write_stores_its_audit_entry(stores: Stores) -> None:
    await stores.agents.add(an_agent(), created(1))
    await stores.agents.save(an_agent(version=2), expected_version=1, audit=updated(2))
    await stores.agents.delete(ORG, AGENT, deleted(3))
    assert await audit_of(stores) == (deleted(3), updated(2), created(1))


@pytest.mark.requirement("C6")
async def test_another_organizations_agent_does_not_exist_and_its_name_is_free(stores: Stores) -> None:
    await stores.agents.add(an_agent(), created(1))

    assert await stores.agents.get(OTHER_ORG, AGENT) is None
    assert await stores.agents.find(OTHER_ORG, "researcher") is None
    assert await all_of(partial(stores.agents.page, OTHER_ORG)) == ()
    assert await all_of(partial(stores.agents.versions, OTHER_ORG, AGENT)) == ()
    assert not await stores.agents.delete(OTHER_ORG, AGENT, deleted())
    theirs = an_agent(organization_id=OTHER_ORG, version=2)
    with pytest.raises(ServiceError) as refused:
        await stores.agents.save(theirs, expected_version=1, audit=updated())
    assert refused.value.kind is ErrorKind.NOT_FOUND
    of_theirs = replace(created(4), organization_id=OTHER_ORG)
    await stores.agents.add(an_agent(AgentId(numbered("agt", 2)), organization_id=OTHER_ORG), of_theirs)
    assert await stores.agents.get(ORG, AGENT) == an_agent()


@pytest.mark.requirement("C1")
async def test_policies_of_an_agent_are_read_as_they_were_stored(stores: Stores) -> None:
    rules = (("mcp__git__*", ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("force",), max_calls=2)),)
    agent = an_agent()
    agent = replace(agent, config=replace(agent.config, tool_policies=ToolPolicies(rules=rules)))
    await stores.agents.add(agent, created())
    assert await stores.agents.get(ORG, agent.id) == agent


async def test_what_agents_are_called_is_read_of_many_at_once_deleted_ones_too(stores: Stores) -> None:
    for number in (1, 2, 3):
        await stores.agents.add(agent_number(number), created(number))
    await stores.agents.delete(ORG, agent_number(2).id, deleted(4))
    asked = [agent_number(number).id for number in (1, 2, 9)]
    names = await stores.agents.names(ORG, asked)
    assert {each: (found.name, found.deleted) for each, found in names.items()} == {
        asked[0]: ("agent 1", False),
        asked[1]: ("agent 2", True),
    }
    assert await stores.agents.names(OTHER_ORG, asked) == {}
    assert set(await stores.agents.names(ORG, asked, teams=frozenset({"sales"}))) == set(asked[:2])
    assert await stores.agents.names(ORG, ()) == {}


@pytest.mark.requirement("P2")
async def test_names_of_agents_of_other_teams_are_not_read(stores: Stores) -> None:
    await grouped(stores)
    agent = agent_number(1)
    await stores.agents.add(replace(agent, config=replace(agent.config, team=TEAM)), created(1))
    await stores.agents.add(agent_number(2), created(2))
    asked = [agent_number(number).id for number in (1, 2)]
    assert set(await stores.agents.names(ORG, asked, teams=frozenset({"sales"}))) == {asked[1]}
    assert set(await stores.agents.names(ORG, asked, teams=frozenset({TEAM}))) == set(asked)
    assert set(await stores.agents.names(ORG, asked)) == set(asked)
    await stores.agents.delete(ORG, asked[0], deleted(3))
    assert set(await stores.agents.names(ORG, asked, teams=frozenset({"sales"}))) == {asked[1]}
