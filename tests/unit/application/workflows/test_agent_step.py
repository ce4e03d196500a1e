"""An agent as a step: its run awaited, what it waits for handed on, and heard when that changes."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from unittest.mock import AsyncMock

import pytest
from pytest_mock import MockerFixture

from application.runs.new_run import StartedRun
from application.runs.ports import events_topic
from application.runs.start_run import StartRun
from application.runs.stop_run import StopRun
from application.workflows.agent_step import AgentStep
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import RunId, WorkflowRunId
from domain.json_value import JsonObject
from domain.runs.limits import IncompleteReason
from domain.runs.model_settings import Effort, ModelSettings
from domain.runs.output import output_invalid
from domain.runs.run import Run, RunStatus
from domain.tools.wired import WiredNodes
from domain.workflows.execution import NodeRun
from domain.workflows.plan import PlannedNode
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from tests.builders import KEY, ORG, RUN, START, a_run, a_tool_call, a_tool_use
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock
from tests.workflow_builders import agent, entrypoint, planned

NODE = planned(entrypoint(), agent("poet", timeout_s=60), "start -> poet").by_id["poet"]
BEGUN = replace(NodeRun(node_id="poet").started(at=FixedClock().now()), run_id=RUN)


class Step:
    """The step over runs in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state, self.wakeups, self.clock = InMemoryState(), InProcessWakeups(), FixedClock()
        self.start_run = mocker.create_autospec(StartRun, instance=True)
        self.step = AgentStep(
            start_run=self.start_run,
            runs=InMemoryRunStore(self.state, self.wakeups),
            stop_run=mocker.create_autospec(StopRun, instance=True),
            wakeups=self.wakeups,
            expressions=JmesPathExpressions(),
            clock=self.clock,
        )

    def stand(self, run: Run) -> None:
        self.state.runs[run.id] = StoredRun(run=run)
        self.wakeups.wake(events_topic(run.id))

    async def execute(self, run: NodeRun = BEGUN, node: PlannedNode = NODE, team: str | None = None) -> object:
        context = NodeContext(
            organization_id=ORG,
            workflow_run_id=WorkflowRunId("wfr_1"),
            requested_by=KEY,
            run_input=None,
            nodes={},
            team=team,
            note_run=AsyncMock(),
            note_audit=lambda entry: None,
        )
        async with asyncio.timeout(5):
            return await self.step.execute(node, run, context)


@pytest.fixture
def step(mocker: MockerFixture) -> Step:
    return Step(mocker)


WAITING = replace(
    a_run(), status=RunStatus.REQUIRES_ACTION, pending=(a_tool_use(a_tool_call()),), last_seq=7, output="Shall I?"
)


async def test_a_run_that_waits_hands_on_for_what_and_since_when(step: Step) -> None:
    step.stand(WAITING)
    outcome = await step.execute()
    call = a_tool_call()
    assert isinstance(outcome, AwaitsAnswer)
    assert outcome.asked == {"calls": [{"type": "tool_use", "id": call.id, "name": call.name, "params": call.params}]}
    assert (outcome.run_seq, outcome.due_at) == (7, step.clock.now() + timedelta(seconds=60))


async def test_a_completed_run_is_a_success(step: Step) -> None:
    step.stand(replace(a_run(), status=RunStatus.COMPLETED, output="High stands the minster."))
    outcome = await step.execute()
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"text": "High stands the minster.", "run_id": RUN, "thread_id": WAITING.thread_id}


@pytest.mark.requirement("H3")
async def test_the_object_of_a_run_with_a_schema_is_in_the_output_of_its_node(step: Step) -> None:
    step.stand(replace(a_run(), status=RunStatus.COMPLETED, output='{"a": 1}', output_json={"a": 1}))
    outcome = await step.execute()
    assert isinstance(outcome, Succeeded)
    assert isinstance(outcome.output, dict)
    assert outcome.output["output_json"] == {"a": 1}


@pytest.mark.requirement("H3")
async def test_a_run_whose_output_matches_no_schema_fails_its_node_with_the_faults_and_may_be_tried_again(
    step: Step,
) -> None:
    begun = a_run(status=RunStatus.IN_PROGRESS)
    step.stand(begun.ended(RunStatus.FAILED, at=START, output="No.", error=output_invalid(("it is no object",))))
    with pytest.raises(NodeFailed) as failed:
        await step.execute()
    error = failed.value.error
    assert (error.code, error.retryable) == ("output_invalid", True)
    assert "it is no object" in error.detail


@pytest.mark.requirement("H3")
async def test_the_run_has_the_settings_and_the_schema_of_its_node(step: Step) -> None:
    schema: JsonObject = {"type": "object"}
    node = agent("poet", model_settings={"effort": "low", "service_tier": "flex"}, output_schema=schema)
    step.stand(replace(a_run(), status=RunStatus.COMPLETED, output="{}", output_json={}))
    step.start_run.execute.return_value = StartedRun(run=a_run(), created=True)
    fresh = NodeRun(node_id="poet").started(at=FixedClock().now())
    await step.execute(fresh, planned(entrypoint(), node, "start -> poet").by_id["poet"])
    (command,) = step.start_run.execute.await_args.args
    assert command.model_settings == ModelSettings(effort=Effort.LOW, service_tier="flex")
    assert command.output_schema == schema
    assert command.principal.role is Role.OPERATOR


@pytest.mark.parametrize(
    "after",
    [
        replace(WAITING, last_seq=9),
        replace(WAITING, status=RunStatus.QUEUED),
        replace(WAITING, status=RunStatus.FAILED),
    ],
    ids=["something else", "resumed", "ended"],
)
async def test_it_is_heard_when_a_run_does_not_wait_for_the_same_any_more(step: Step, after: Run) -> None:
    step.stand(WAITING)
    assert not await step.step.has_moved_on(ORG, RUN, since_seq=7)
    listening = asyncio.create_task(step.step.moved_on(ORG, RUN, since_seq=7))
    await asyncio.sleep(0)
    assert step.wakeups.topic_count == 1
    step.stand(after)
    await asyncio.wait_for(listening, 4)
    assert await step.step.has_moved_on(ORG, RUN, since_seq=7)


async def test_an_incomplete_run_fails_its_node_with_the_reason_in_words_and_may_be_tried_again(step: Step) -> None:
    begun = a_run(status=RunStatus.IN_PROGRESS)
    step.stand(begun.ended(RunStatus.INCOMPLETE, at=START, output="No.", incomplete_reason=IncompleteReason.REFUSAL))
    with pytest.raises(NodeFailed) as failed:
        await step.execute()
    error = failed.value.error
    assert (error.code, error.retryable) == ("agent_run_incomplete", True)
    assert IncompleteReason.REFUSAL.explanation in error.detail


async def test_a_run_that_is_gone_fails_its_node(step: Step) -> None:
    assert await step.step.has_moved_on(ORG, RunId("run_gone"), since_seq=7)
    with pytest.raises(NodeFailed) as failed:
        await step.execute(replace(BEGUN, run_id=RunId("run_gone")))
    assert failed.value.error.code == "run_not_found"


@pytest.mark.parametrize(
    ("refused", "raised"),
    [
        (ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away."), ServiceError),
        (ServiceError("agent_disabled", ErrorKind.CONFLICT, "Disabled."), NodeFailed),
    ],
)
async def test_a_run_that_cannot_be_begun_fails_its_node_unless_the_database_is_away(
    step: Step, refused: ServiceError, raised: type[Exception]
) -> None:
    step.start_run.execute.side_effect = refused
    with pytest.raises(raised):
        await step.execute(replace(BEGUN, run_id=None))


@pytest.mark.requirement("F3")
async def test_a_run_of_a_node_that_nothing_is_wired_to_is_begun_with_nothing(step: Step) -> None:
    step.start_run.execute.side_effect = ServiceError("agent_disabled", ErrorKind.CONFLICT, "Disabled.")
    with pytest.raises(NodeFailed):
        await step.execute(replace(BEGUN, run_id=None))
    (command,) = step.start_run.execute.await_args.args
    assert command.wired == WiredNodes(workflow_run_id=WorkflowRunId("wfr_1"), node_ids=())


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("team", [None, "finance"])
async def test_the_run_of_an_agent_belongs_to_the_team_of_the_workflow_run(step: Step, team: str | None) -> None:
    completed = replace(a_run(), status=RunStatus.COMPLETED, output="Done.")
    step.stand(completed)
    step.start_run.execute.return_value = StartedRun(run=completed, created=True)
    await step.execute(replace(BEGUN, run_id=None), team=team)
    command = step.start_run.execute.await_args.args[0]
    assert command.team == team
    assert command.principal.visible_teams == frozenset({team} - {None})
