"""ResumeWorkflowRun: which answers are taken, and who may give them."""

from collections.abc import Mapping

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.ports import RunQueue
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.workflows.ports import WorkflowRunStore
from application.workflows.resume_workflow_run import AgentNodeAnswer, ResumeWorkflowRun, ResumeWorkflowRunCommand
from domain.approvals.decision import CallDecision
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, RunId, ToolCallId
from domain.json_value import JsonValue
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import NOT_WAITING, WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_run, after
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.refusals import refused, storage_away
from tests.run_builders import a_run_approval, a_use_awaiting, a_waiting_run
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.workflow_builders import WORKFLOW_RUN, a_workflow_run


def asking(node_id: str, schema: JsonValue = None) -> NodeRun:
    """A node that waits for a person."""
    asked: JsonValue = {"prompt": "?", "schema": schema}
    return NodeRun(node_id=node_id, status=NodeStatus.WAITING, attempt=1, asked=asked)


DONE = NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, attempt=1)
AGENT_WAITS = NodeRun(node_id="guide", status=NodeStatus.WAITING, attempt=1, run_id=RunId("run_guide"))
WAITING = a_workflow_run(
    DONE,
    AGENT_WAITS,
    asking("publish", {"type": "boolean"}),
    asking("title", {"type": "string"}),
    asking("note"),
    status=WorkflowRunStatus.REQUIRES_ACTION,
)
RESULT = ClientToolResult(tool_call_id=ToolCallId("call_1"), result="done")
DECISION = CallDecision(tool_call_id=ToolCallId("call_2"), approve=True)
GUIDE = AgentNodeAnswer(node_id="guide", tool_results=(RESULT,), approvals=(DECISION,))


class Ports:
    """A run that waits for three answers, and for calls of an agent's run."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.runs: WorkflowRunStore = InMemoryWorkflowRunStore(self.state, InProcessWakeups())
        self.resume_run: MockType = mocker.create_autospec(ResumeRun, instance=True)
        self.resume_run.execute.return_value = a_run()
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.store(WAITING)

    def store(self, run: WorkflowRun) -> None:
        self.state.workflow_runs[run.id] = StoredWorkflowRun(run)

    @property
    def stored(self) -> WorkflowRun:
        return self.state.workflow_runs[WORKFLOW_RUN].run

    async def resume(
        self,
        principal: Principal | None = None,
        *,
        answers: Mapping[str, JsonValue] | None = None,
        agent: AgentNodeAnswer | None = None,
    ) -> WorkflowRun:
        resuming = ResumeWorkflowRun(
            runs=self.runs,
            resume_run=self.resume_run,
            schemas=JsonSchemaValidator(),
            queue=self.queue,
            clock=FixedClock(after(60)),
            ids=SequentialIds(),
        )
        command = ResumeWorkflowRunCommand(
            principal=principal or a_principal(Role.OPERATOR), run_id=WORKFLOW_RUN, answers=answers or {}, agent=agent
        )
        return await resuming.execute(command)

    def assert_nothing_is_taken(self) -> None:
        assert self.stored == WAITING
        assert self.state.audit == {}
        self.resume_run.execute.assert_not_awaited()
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- answers of people ---


@pytest.mark.requirement("F4")
async def test_an_answer_is_the_output_of_its_node_and_the_run_is_queued(ports: Ports) -> None:
    resumed = await ports.resume(answers={"publish": True})

    node = resumed.nodes["publish"]
    assert (resumed.status, node.status, node.output) == (WorkflowRunStatus.QUEUED, NodeStatus.SUCCEEDED, True)
    assert (node.finished_at, resumed) == (after(60), ports.stored)
    ports.queue.submit.assert_awaited_once_with(WORKFLOW_RUN)
    ports.resume_run.execute.assert_not_awaited()


async def test_nodes_without_an_answer_keep_waiting(ports: Ports) -> None:
    resumed = await ports.resume(answers={"publish": True})
    assert [node.node_id for node in resumed.waiting_nodes] == ["guide", "note", "title"]


async def test_a_node_without_a_schema_takes_any_answer(ports: Ports) -> None:
    assert (await ports.resume(answers={"note": [1, {"a": None}]})).nodes["note"].output == [1, {"a": None}]


@pytest.mark.requirement("C5")
async def test_a_resume_is_audited_with_the_answered_nodes(ports: Ports) -> None:
    await ports.resume(answers={"title": "Ulm", "publish": True})

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (
        AuditAction.WORKFLOW_RUN_RESUMED,
        "key_operator",
        WORKFLOW_RUN,
    )
    assert (entry.at, entry.details) == (after(60), {"nodes": ["publish", "title"]})


async def test_every_answer_that_does_not_fit_its_schema_is_named_and_none_is_taken(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.resume(answers={"publish": "yes", "note": "fine", "title": 7})

    assert raised.value.code == "answers_invalid"
    assert [violation.path for violation in raised.value.violations] == ["answers.0.answer", "answers.2.answer"]
    ports.assert_nothing_is_taken()


@pytest.mark.parametrize("node_id", ["start", "elsewhere", "guide"], ids=["done", "unknown", "waits for its agent"])
async def test_an_answer_to_a_node_that_does_not_wait_for_one_is_refused_with_all_others(
    ports: Ports, node_id: str
) -> None:
    with refused("node_not_waiting"):
        await ports.resume(answers={"publish": True, node_id: "x"})

    ports.assert_nothing_is_taken()


@pytest.mark.parametrize("status", [status for status in WorkflowRunStatus if status != WAITING.status])
async def test_a_run_that_does_not_wait_takes_no_answer(ports: Ports, status: WorkflowRunStatus) -> None:
    ports.store(a_workflow_run(asking("publish"), status=status))

    with refused("workflow_run_not_waiting"):
        await ports.resume(answers={"publish": True})

    assert ports.state.audit == {}
    ports.queue.submit.assert_not_awaited()


async def test_no_answers_at_all_are_refused(ports: Ports) -> None:
    with refused("answers_invalid"):
        await ports.resume()

    ports.assert_nothing_is_taken()


# --- what the run of an agent waits for ---


@pytest.mark.requirement("F4")
async def test_what_an_agents_run_waits_for_is_given_to_that_run_and_the_workflow_run_is_queued(ports: Ports) -> None:
    resumed = await ports.resume(agent=GUIDE)

    ports.resume_run.execute.assert_awaited_once_with(
        ResumeRunCommand(
            principal=a_principal(Role.OPERATOR),
            run_id=RunId("run_guide"),
            tool_results=(RESULT,),
            approvals=(DECISION,),
        )
    )
    assert resumed.status is WorkflowRunStatus.QUEUED
    assert dict(resumed.nodes) == dict(WAITING.nodes)
    ports.queue.submit.assert_awaited_once_with(WORKFLOW_RUN)


@pytest.mark.requirement("C5")
async def test_a_resume_of_an_agents_run_is_audited_with_its_node(ports: Ports) -> None:
    await ports.resume(agent=GUIDE)

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.details) == (AuditAction.WORKFLOW_RUN_RESUMED, {"nodes": ["guide"]})


@pytest.mark.requirement("C3", "P2")
async def test_an_approval_that_others_must_give_too_resumes_and_audits_nothing(ports: Ports) -> None:
    approval = a_run_approval()
    decision = CallDecision(tool_call_id=approval.tool_call_id, approve=True)
    ports.resume_run.execute.return_value = a_waiting_run(a_use_awaiting(approval))

    assert await ports.resume(agent=AgentNodeAnswer(node_id="guide", approvals=(decision,))) == WAITING

    assert (ports.stored, ports.state.audit) == (WAITING, {})
    ports.queue.submit.assert_not_awaited()


async def test_answers_and_an_agents_calls_are_not_taken_together(ports: Ports) -> None:
    with refused("answers_invalid"):
        await ports.resume(answers={"publish": True}, agent=GUIDE)

    ports.assert_nothing_is_taken()


@pytest.mark.parametrize("node_id", ["start", "publish", "elsewhere"])
async def test_a_node_whose_agents_run_does_not_wait_takes_no_calls(ports: Ports, node_id: str) -> None:
    with refused("node_not_waiting"):
        await ports.resume(agent=AgentNodeAnswer(node_id=node_id, approvals=(DECISION,)))

    ports.assert_nothing_is_taken()


async def test_an_ended_run_resumes_no_run_of_an_agent(ports: Ports) -> None:
    ports.store(a_workflow_run(AGENT_WAITS, status=WorkflowRunStatus.FAILED))

    with refused("node_not_waiting"):
        await ports.resume(agent=GUIDE)

    ports.resume_run.execute.assert_not_awaited()


async def test_what_the_agents_run_refuses_leaves_the_workflow_run_waiting(ports: Ports) -> None:
    ports.resume_run.execute.side_effect = conflict("approval_decided", "The approval was decided.")

    with refused("approval_decided"):
        await ports.resume(agent=GUIDE)

    assert ports.stored == WAITING
    assert ports.state.audit == {}
    ports.queue.submit.assert_not_awaited()


async def test_a_workflow_run_that_a_worker_resumed_meanwhile_is_returned_as_it_is(ports: Ports) -> None:
    under_way = a_workflow_run(AGENT_WAITS, status=WorkflowRunStatus.IN_PROGRESS)
    ports.store(under_way)

    assert await ports.resume(agent=GUIDE) == under_way

    ports.resume_run.execute.assert_awaited_once()
    ports.queue.submit.assert_not_awaited()


# --- who may ---


@pytest.mark.requirement("C6")
async def test_a_runner_answers_in_a_run_it_started(ports: Ports) -> None:
    ports.store(
        a_workflow_run(asking("note"), status=WorkflowRunStatus.REQUIRES_ACTION, requested_by=ApiKeyId("key_runner"))
    )
    resumed = await ports.resume(a_principal(Role.RUNNER), answers={"note": "fine"})
    assert resumed.status is WorkflowRunStatus.QUEUED


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_operators_answer_in_any_run(ports: Ports, role: Role) -> None:
    resumed = await ports.resume(a_principal(role), answers={"note": "fine"})
    assert resumed.status is WorkflowRunStatus.QUEUED


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "code"),
    [
        (a_principal(Role.RUNNER), "run_not_yours"),
        *((a_principal(role), "role_insufficient") for role in roles_below(Role.RUNNER)),
        (a_stranger(), "workflow_run_not_found"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.role.value,
)
@pytest.mark.parametrize("agent", [None, GUIDE], ids=["answer", "agent's calls"])
async def test_others_resume_nothing(
    ports: Ports, principal: Principal, code: str, agent: AgentNodeAnswer | None
) -> None:
    with refused(code):
        await ports.resume(principal, answers={"note": "fine"} if agent is None else None, agent=agent)

    ports.assert_nothing_is_taken()


# --- failures of ports ---


@pytest.fixture
def runs(ports: Ports, mocker: MockerFixture) -> MockType:
    """A store that returns the waiting run, and fails as a test says."""
    store: MockType = mocker.create_autospec(WorkflowRunStore, instance=True)
    store.get.return_value = WAITING
    ports.runs = store
    return store


@pytest.mark.parametrize("agent", [None, GUIDE], ids=["answer", "agent's calls"])
async def test_an_answer_that_cannot_be_stored_queues_nothing(
    ports: Ports, runs: MockType, agent: AgentNodeAnswer | None
) -> None:
    runs.change.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.resume(answers={"note": "fine"} if agent is None else None, agent=agent)

    ports.queue.submit.assert_not_awaited()


async def test_a_run_that_cannot_be_read_takes_nothing(ports: Ports, runs: MockType) -> None:
    runs.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.resume(agent=GUIDE)

    runs.change.assert_not_awaited()
    ports.resume_run.execute.assert_not_awaited()


async def test_an_answer_after_another_one_is_a_conflict(ports: Ports, runs: MockType) -> None:
    runs.change.side_effect = ServiceError(NOT_WAITING, ErrorKind.CONFLICT, "The workflow run is queued.")

    with refused("workflow_run_not_waiting"):
        await ports.resume(answers={"note": "fine"})

    ports.queue.submit.assert_not_awaited()
