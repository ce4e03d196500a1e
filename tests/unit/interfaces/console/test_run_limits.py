"""Gauges of runs: what runs and waits now, of what may."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.queries import ListAgents
from application.identity.ports import IdentityStore
from application.identity.queries import GetOrganization
from application.runs.queries import GetQueue, ListRuns
from application.runs.queue_lines import QueueLine
from application.system.pages import Page
from domain.identity.impersonation import as_others
from domain.identity.user_limits import UserLimits
from domain.ids import AgentId, ApiKeyId, UserId
from domain.runs.lane import Lane
from interfaces.console.run_limits import RunGauge, RunLimits
from tests.builders import AGENT, ORG, a_run, an_agent, an_organization
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


def a_line(agent_id: AgentId, *, running: int, queued: int) -> QueueLine:
    return QueueLine(
        organization_id=ORG,
        agent_id=agent_id,
        lane=Lane.INTERACTIVE,
        queued=queued,
        running=running,
        oldest_queued_at=None,
    )


async def test_runs_of_the_organization_and_of_bounded_agents_are_counted(mocker: MockerFixture) -> None:
    organization = mocker.create_autospec(GetOrganization, instance=True)
    organization.execute.return_value = replace(an_organization(), max_running=8)
    free = replace(an_agent(), id=AgentId("agt_free"))
    plain = an_agent()
    bounded = replace(plain, config=replace(plain.config, max_running=2, max_queued=10))
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=(free, bounded))
    queue = mocker.create_autospec(GetQueue, instance=True)
    queue.recent.return_value = (a_line(AGENT, running=2, queued=1), a_line(free.id, running=2, queued=0))
    limits = RunLimits(
        get_organization=organization,
        list_agents=agents,
        get_queue=queue,
        list_runs=mocker.create_autospec(ListRuns, instance=True),
        identities=mocker.create_autospec(IdentityStore, instance=True),
    )

    found = await limits.of(a_principal())

    whole, of_agents = found["runs"], found["runs_of_agents"]
    assert isinstance(whole, list)
    assert isinstance(of_agents, list)
    assert [figures(each) for each in whole] == [(None, "running", 4, 8, 50), (None, "queued", 1, None, None)]
    name = bounded.config.name
    assert [figures(each) for each in of_agents] == [(name, "running", 2, 2, 100), (name, "queued", 1, 10, 10)]


@pytest.mark.parametrize(("keys_count", "of_bob"), [(False, (1, 50)), (True, (2, 100))])
async def test_active_runs_of_users_with_a_limit_are_counted_for_who_acts(
    mocker: MockerFixture, of_bob: tuple[int, int], *, keys_count: bool
) -> None:
    organization = mocker.create_autospec(GetOrganization, instance=True)
    organization.execute.return_value = replace(
        an_organization(),
        user_limits=UserLimits(max_active_runs=4),
        limits_of_users={"usr_bob": UserLimits(max_active_runs=2)},
        keys_count_for_users=keys_count,
    )
    agents = mocker.create_autospec(ListAgents, instance=True)
    agents.execute.return_value = Page(items=())
    queue = mocker.create_autospec(GetQueue, instance=True)
    queue.recent.return_value = ()
    runs = mocker.create_autospec(ListRuns, instance=True)
    starters = ("usr_ada", f"{as_others(ApiKeyId('usr_ada'))}usr_bob", "usr_bob", "key_laptop", "schedule:sch_1")
    found = tuple(replace(a_run(), requested_by=ApiKeyId(each)) for each in starters)
    runs.execute.return_value = Page(items=found, next_cursor="more")
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.creators.return_value = {ApiKeyId("key_laptop"): UserId("usr_bob")}
    limits = RunLimits(
        get_organization=organization, list_agents=agents, get_queue=queue, list_runs=runs, identities=identities
    )

    context = await limits.of(a_principal())

    of_users = context["runs_of_users"]
    assert isinstance(of_users, list)
    assert [figures(each) for each in of_users] == [
        ("usr_ada", "active", 2, 4, 50),
        ("usr_bob", "active", of_bob[0], 2, of_bob[1]),
    ]
    assert all(each.is_more for each in of_users)
    assert context["limits_of_each"] == "4 active runs"


def figures(gauge: RunGauge) -> tuple[str | None, str, int, int | None, int | None]:
    return (gauge.name, gauge.what, gauge.used, gauge.bound, gauge.percent)
