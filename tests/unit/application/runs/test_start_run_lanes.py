"""StartRun: the lane of a run, and its place in the queue."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.identity.user_limits import UserLimits
from domain.ids import UserId, WorkflowRunId
from domain.runs.lane import Lane
from domain.runs.run import RunStatus
from domain.tools.wired import WiredNodes
from tests.builders import a_run_id, an_agent, an_organization
from tests.people_builders import USER, a_person
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.test_start_run import HELLO, Ports


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("K1")
async def test_a_run_is_in_the_lane_that_it_states_or_in_that_of_its_agent(ports: Ports) -> None:
    agent = an_agent()
    ports.use(replace(agent, config=replace(agent.config, lane=Lane.BATCH)))
    assert ports.stored(await ports.start(HELLO)).lane is Lane.BATCH
    ports.use(replace(agent, config=replace(agent.config, lane=Lane.INTERACTIVE)))
    assert ports.stored(await ports.start(replace(HELLO, lane=Lane.NORMAL))).lane is Lane.NORMAL


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(("of_agent", "wanted"), [(Lane.BATCH, Lane.NORMAL), (Lane.NORMAL, Lane.INTERACTIVE)])
async def test_a_lane_before_that_of_the_agent_needs_an_operator(ports: Ports, of_agent: Lane, wanted: Lane) -> None:
    agent = an_agent()
    ports.use(replace(agent, config=replace(agent.config, lane=of_agent)))
    with pytest.raises(ServiceError) as refused:
        await ports.start(replace(HELLO, lane=wanted))
    assert (refused.value.code, refused.value.kind) == ("lane_not_allowed", ErrorKind.FORBIDDEN)
    ports.assert_nothing_starts()
    by_operator = replace(HELLO, lane=wanted, principal=a_principal(Role.OPERATOR))
    assert ports.stored(await ports.start(by_operator)).lane is wanted


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("layer", ["agent", "organization"])
async def test_a_start_beyond_the_queued_runs_that_are_allowed_is_refused_with_its_position(
    ports: Ports, layer: str
) -> None:
    agent = an_agent()
    ports.use(replace(agent, config=replace(agent.config, max_queued=1 if layer == "agent" else None)))
    ports.organizations.get.return_value = replace(an_organization(), max_queued=1 if layer == "organization" else None)
    await ports.start(HELLO)
    with pytest.raises(ServiceError) as full:
        await ports.start(HELLO)
    assert (full.value.code, full.value.kind) == ("queue_full", ErrorKind.LIMIT)
    assert full.value.extra == {"retry_after_s": "1", "position": "2", "limited": layer}
    assert len(ports.state.runs) == 1


@pytest.mark.requirement("K2")
async def test_a_step_of_an_admitted_workflow_run_is_always_accepted(ports: Ports) -> None:
    ports.organizations.get.return_value = replace(an_organization(), max_queued=1)
    await ports.start(HELLO)
    wired = WiredNodes(workflow_run_id=WorkflowRunId("wfr_1"), node_ids=("search",))
    assert ports.stored(await ports.start(replace(HELLO, run_id=a_run_id(42), wired=wired))).status is RunStatus.QUEUED


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("starter", [USER, f"impersonation:{USER}:usr_2"], ids=["the user", "acting as another"])
async def test_a_user_has_as_many_active_runs_as_the_organization_allows(ports: Ports, starter: str) -> None:
    ports.organizations.get.return_value = replace(
        an_organization(),
        user_limits=UserLimits(max_active_runs=9),
        limits_of_users={USER: UserLimits(max_active_runs=1)},
    )
    by_user = replace(HELLO, principal=a_person(Role.RUNNER))
    await ports.start(by_user)
    with pytest.raises(ServiceError) as full:
        await ports.start(replace(HELLO, principal=a_person(Role.RUNNER, id=UserId(starter))))
    assert (full.value.code, full.value.kind) == ("user_runs_full", ErrorKind.LIMIT)
    assert full.value.extra == {"retry_after_s": "5", "limited": "user"}
    for other in (HELLO.principal, a_person(Role.RUNNER, id=UserId("usr_2"))):
        assert (await ports.start(replace(HELLO, principal=other))).created
