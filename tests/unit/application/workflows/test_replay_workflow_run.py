"""ReplayWorkflowRun: who may, what the new run is, and that the earlier one stays."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.runs.ports import RunQueue
from application.workflows.replay_workflow_run import ReplayWorkflowRun, ReplayWorkflowRunCommand
from application.workflows.start_workflow_run import StartWorkflowRun
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.group_builders import a_group
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.workflow_builders import WORKFLOW, WORKFLOW_RUN, a_workflow, a_workflow_run, entrypoint, transform

pytestmark = pytest.mark.requirement("F4", "U6")

FIRST = a_workflow(entrypoint(), transform("one"), "start -> one")
NEWEST = a_workflow(entrypoint(), transform("one"), transform("two"), "start -> one", "one -> two", version=2)


def done(node_id: str) -> NodeRun:
    return NodeRun(node_id=node_id, status=NodeStatus.SUCCEEDED, output=node_id, attempt=1)


class Ports:
    """A run of the first version that has ended; a second version has another node."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.workflows[WORKFLOW] = [FIRST, NEWEST]
        self.earlier = a_workflow_run(
            done("start"),
            done("one"),
            status=WorkflowRunStatus.COMPLETED,
            input="hello",
            requested_by="key_runner",  # type: ignore[arg-type]
        )
        self.state.workflow_runs[WORKFLOW_RUN] = StoredWorkflowRun(self.earlier)
        self.queue = mocker.create_autospec(RunQueue, instance=True)

    async def replay(self, principal: Principal, node_id: str = "two", *, alone: bool = False) -> WorkflowRun:
        workflows = InMemoryWorkflowStore(self.state)
        runs = InMemoryWorkflowRunStore(self.state, InProcessWakeups())
        start = StartWorkflowRun(
            workflows=workflows,
            runs=runs,
            secrets=InMemorySecretStore(self.state),
            schemas=JsonSchemaValidator(),
            queue=self.queue,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        replaying = ReplayWorkflowRun(workflows=workflows, runs=runs, start_workflow_run=start, clock=FixedClock())
        return await replaying.execute(
            ReplayWorkflowRunCommand(principal=principal, run_id=WORKFLOW_RUN, node_id=node_id, alone=alone)
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_a_new_run_of_the_newest_version_takes_over_the_input_and_what_was_done(ports: Ports) -> None:
    run = await ports.replay(a_principal(Role.RUNNER))
    assert (run.status, run.workflow_version, run.input) == (WorkflowRunStatus.QUEUED, 2, "hello")
    assert {each.node_id: each.output for each in run.nodes.values()} == {"start": "start", "one": "one"}
    ports.queue.submit.assert_awaited_once_with(run.id)
    assert ports.state.workflow_runs[WORKFLOW_RUN].run == ports.earlier


async def test_alone_nothing_after_the_node_is_executed(ports: Ports) -> None:
    run = await ports.replay(a_principal(Role.RUNNER), "one", alone=True)
    assert run.nodes["two"].status is NodeStatus.CANCELLED
    assert "one" not in run.nodes


@pytest.mark.requirement("C5")
async def test_a_replay_is_audited_with_the_earlier_run_and_the_node(ports: Ports) -> None:
    await ports.replay(a_principal(Role.RUNNER))
    [entry] = ports.state.audit.values()
    replay = {"replay_of": WORKFLOW_RUN, "node_id": "two", "alone": False}
    assert entry.details == {"workflow_id": WORKFLOW, "version": 2, **replay}


async def test_only_who_may_act_on_the_earlier_run_replays_it(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.replay(a_principal(Role.VIEWER))
    with refused("workflow_run_not_found"):
        await ports.replay(a_stranger())
    ports.state.workflow_runs[WORKFLOW_RUN] = StoredWorkflowRun(
        a_workflow_run(done("start"), done("one"), status=WorkflowRunStatus.COMPLETED)
    )
    with refused("run_not_yours"):
        await ports.replay(a_principal(Role.RUNNER))
    assert (await ports.replay(a_principal(Role.OPERATOR))).organization_id == ORG
    ports.queue.submit.assert_awaited_once()


async def test_a_node_that_the_newest_version_does_not_have_is_refused(ports: Ports) -> None:
    with refused("node_not_a_step"):
        await ports.replay(a_principal(Role.RUNNER), "gone")
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("of_workflow", [None, "finance"])
async def test_what_a_run_of_a_team_did_stays_with_the_team(ports: Ports, of_workflow: str | None) -> None:
    group = a_group("finance")
    ports.state.organization_groups[group.id] = group
    ports.state.workflow_runs[WORKFLOW_RUN].run = replace(ports.earlier, team="finance")
    ports.state.workflows[WORKFLOW] = [FIRST, replace(NEWEST, definition=replace(NEWEST.definition, team=of_workflow))]
    member = replace(a_principal(Role.OPERATOR), teams=frozenset({"finance"}))

    assert (await ports.replay(member)).team == "finance"

    with refused("workflow_run_not_found"):
        await ports.replay(replace(member, teams=frozenset()))


@pytest.mark.requirement("P2")
async def test_a_run_of_one_team_is_not_replayed_for_another_one(ports: Ports) -> None:
    ports.state.workflow_runs[WORKFLOW_RUN].run = replace(ports.earlier, team="finance")
    ports.state.workflows[WORKFLOW] = [FIRST, replace(NEWEST, definition=replace(NEWEST.definition, team="legal"))]

    with refused("workflow_run_of_another_team"):
        await ports.replay(a_principal())

    assert list(ports.state.workflow_runs) == [WORKFLOW_RUN]
