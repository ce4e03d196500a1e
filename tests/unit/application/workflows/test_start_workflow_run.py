"""StartWorkflowRun: what is stored and queued, and what is refused before that."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.new_run import IdempotencyKey
from application.runs.ports import RunQueue
from application.workflows.ports import WorkflowRunStore, WorkflowStore
from application.workflows.start_workflow_run import StartedWorkflowRun, StartWorkflowRun, StartWorkflowRunCommand
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId, WorkflowRunId
from domain.json_value import JsonValue
from domain.secrets.secret import Secret
from domain.workflows.run import WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG, OTHER_ORG, START
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.workflow_builders import WORKFLOW, a_workflow, a_workflow_run, entrypoint, node, transform

FIRST = a_workflow(entrypoint())
STORED = a_workflow(
    node("start", "entrypoint", schema={"type": "object", "required": ["city"]}),
    transform("end"),
    "start -> end",
    version=2,
)
WITH_SECRETS = a_workflow(
    entrypoint(),
    node("first", "http_request", url="https://a.example", headers={"Authorization": {"secret": "TOKEN"}}),
    node("second", "http_request", url="https://a.example", headers={"X-Key": {"secret": "KEY"}}),
    "start -> first",
    "first -> second",
)
ULM: JsonValue = {"city": "Ulm"}
KEY_OF_CLIENT = IdempotencyKey(key="once", body_digest="digest")


class Ports:
    """The workflow `story` at version 2, whose input needs a city; no secrets."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.workflows[WORKFLOW] = [FIRST, STORED]
        self.workflows: WorkflowStore = InMemoryWorkflowStore(self.state)
        self.runs: WorkflowRunStore = InMemoryWorkflowRunStore(self.state, InProcessWakeups())
        self.secrets = InMemorySecretStore(self.state)
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.clock = FixedClock()
        self.ids = SequentialIds()

    async def start(
        self,
        principal: Principal | None = None,
        *,
        workflow: str = "story",
        given: JsonValue = ULM,
        idempotency: IdempotencyKey | None = None,
    ) -> StartedWorkflowRun:
        starting = StartWorkflowRun(
            workflows=self.workflows,
            runs=self.runs,
            secrets=self.secrets,
            schemas=JsonSchemaValidator(),
            queue=self.queue,
            clock=self.clock,
            ids=self.ids,
        )
        return await starting.execute(
            StartWorkflowRunCommand(
                principal=principal or a_principal(Role.RUNNER),
                workflow=workflow,
                input=given,
                idempotency=idempotency,
            )
        )

    def add_secret(self, name: str, organization_id: OrganizationId = ORG) -> None:
        secret = Secret(organization_id=organization_id, name=name, created_at=START, updated_at=START)
        self.state.secrets[organization_id, name] = (secret, "value")

    def assert_nothing_is_started(self) -> None:
        assert (self.state.workflow_runs, self.state.audit) == ({}, {})
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- runs that are started ---


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("called", ["story", WORKFLOW])
async def test_a_run_of_the_newest_version_is_stored_and_queued(ports: Ports, called: str) -> None:
    started = await ports.start(workflow=called)

    run = started.run
    assert (started.created, run.status) == (True, WorkflowRunStatus.QUEUED)
    assert (run.workflow_id, run.workflow_version, run.input) == (WORKFLOW, 2, ULM)
    assert (run.organization_id, run.requested_by, run.created_at) == (ORG, "key_runner", START)
    assert ports.state.workflow_runs[run.id].run == run
    ports.queue.submit.assert_awaited_once_with(run.id)


async def test_a_run_keeps_its_version_when_its_workflow_is_changed_and_deleted(ports: Ports) -> None:
    run = (await ports.start()).run
    ports.state.workflows[WORKFLOW].append(a_workflow(entrypoint(), version=3))
    ports.state.deleted_workflows[WORKFLOW] = START

    assert await ports.runs.definition(ORG, run) == STORED.definition


@pytest.mark.requirement("C5")
async def test_a_start_is_audited(ports: Ports) -> None:
    run = (await ports.start()).run

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.WORKFLOW_RUN_STARTED, "key_runner", run.id)
    assert entry.details == {"workflow_id": WORKFLOW, "version": 2}


# --- idempotency keys ---


@pytest.mark.requirement("E5", "F4")
async def test_the_same_key_again_returns_the_same_run_and_queues_nothing(ports: Ports) -> None:
    first = await ports.start(idempotency=KEY_OF_CLIENT)

    again = await ports.start(idempotency=KEY_OF_CLIENT)

    assert again == StartedWorkflowRun(run=first.run, created=False)
    assert len(ports.state.workflow_runs) == len(ports.state.audit) == 1
    ports.queue.submit.assert_awaited_once_with(first.run.id)


async def test_the_same_key_returns_the_run_even_if_the_workflow_was_deleted_since(ports: Ports) -> None:
    first = await ports.start(idempotency=KEY_OF_CLIENT)
    ports.state.deleted_workflows[WORKFLOW] = START

    assert (await ports.start(idempotency=KEY_OF_CLIENT)).run == first.run


@pytest.mark.requirement("E5")
async def test_the_same_key_with_another_body_is_refused(ports: Ports) -> None:
    await ports.start(idempotency=KEY_OF_CLIENT)

    with refused("idempotency_key_reused"):
        await ports.start(idempotency=replace(KEY_OF_CLIENT, body_digest="another"))

    assert len(ports.state.workflow_runs) == 1


@pytest.mark.requirement("E5")
async def test_a_run_that_the_same_key_started_meanwhile_is_returned_and_not_queued_again(
    ports: Ports, mocker: MockerFixture
) -> None:
    earlier = a_workflow_run(id=WorkflowRunId("wfr_earlier"))
    runs = ports.runs = mocker.create_autospec(WorkflowRunStore, instance=True)
    runs.started_before.return_value = None
    runs.start.return_value = earlier

    assert await ports.start(idempotency=KEY_OF_CLIENT) == StartedWorkflowRun(run=earlier, created=False)

    assert runs.start.await_args.kwargs == {"idempotency": KEY_OF_CLIENT}
    ports.queue.submit.assert_not_awaited()


# --- what is refused ---


@pytest.mark.parametrize("given", [None, {}, "Ulm"])
async def test_an_input_that_does_not_fit_the_schema_of_the_entrypoint_is_refused(
    ports: Ports, given: JsonValue
) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.start(given=given)

    assert raised.value.code == "workflow_input_invalid"
    assert [violation.path for violation in raised.value.violations] == ["input"]
    ports.assert_nothing_is_started()


@pytest.mark.parametrize("given", [None, {}, "anything", [1]])
async def test_an_entrypoint_without_a_schema_takes_any_input(ports: Ports, given: JsonValue) -> None:
    ports.state.workflows[WORKFLOW] = [FIRST]
    assert (await ports.start(given=given)).run.input == given


@pytest.mark.requirement("C7")
async def test_all_missing_secrets_are_named_with_their_nodes(ports: Ports) -> None:
    ports.state.workflows[WORKFLOW] = [WITH_SECRETS]

    with pytest.raises(ServiceError) as raised:
        await ports.start()

    assert raised.value.code == "secret_missing"
    assert "'KEY' of the node 'second', 'TOKEN' of the node 'first'" in raised.value.detail
    ports.assert_nothing_is_started()


@pytest.mark.requirement("C6")
async def test_a_secret_of_another_organization_is_missing(ports: Ports) -> None:
    ports.state.workflows[WORKFLOW] = [WITH_SECRETS]
    ports.add_secret("KEY")
    ports.add_secret("TOKEN", OTHER_ORG)

    with refused("secret_missing"):
        await ports.start()

    ports.add_secret("TOKEN")
    assert (await ports.start()).created


async def test_a_workflow_that_no_longer_compiles_is_not_runnable(ports: Ports) -> None:
    ports.state.workflows[WORKFLOW] = [a_workflow(transform("alone"))]

    with refused("workflow_not_runnable"):
        await ports.start()

    ports.assert_nothing_is_started()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.RUNNER))
async def test_a_role_below_runner_starts_nothing(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.start(a_principal(role))

    ports.assert_nothing_is_started()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.RUNNER))
async def test_a_role_below_runner_does_not_read_a_run_by_an_idempotency_key(ports: Ports, role: Role) -> None:
    await ports.start(idempotency=KEY_OF_CLIENT)

    with refused("role_insufficient"):
        await ports.start(a_principal(role), idempotency=KEY_OF_CLIENT)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("called", ["story", WORKFLOW])
async def test_a_workflow_of_another_organization_is_not_found(ports: Ports, called: str) -> None:
    with refused("workflow_not_found"):
        await ports.start(a_stranger(), workflow=called)

    ports.assert_nothing_is_started()


@pytest.mark.requirement("C6", "E5")
async def test_an_idempotency_key_is_of_one_organization(ports: Ports) -> None:
    await ports.start(idempotency=KEY_OF_CLIENT)

    with refused("workflow_not_found"):
        await ports.start(a_stranger(), idempotency=KEY_OF_CLIENT)


# --- failures of ports ---


async def test_a_run_that_cannot_be_stored_is_not_queued(ports: Ports, mocker: MockerFixture) -> None:
    runs = ports.runs = mocker.create_autospec(WorkflowRunStore, instance=True)
    runs.start.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.start()

    ports.queue.submit.assert_not_awaited()


async def test_no_run_is_stored_while_earlier_runs_of_its_key_cannot_be_read(
    ports: Ports, mocker: MockerFixture
) -> None:
    runs = ports.runs = mocker.create_autospec(WorkflowRunStore, instance=True)
    runs.started_before.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.start(idempotency=KEY_OF_CLIENT)

    runs.start.assert_not_awaited()
    ports.queue.submit.assert_not_awaited()


async def test_a_workflow_that_cannot_be_read_is_not_reported_as_missing(ports: Ports, mocker: MockerFixture) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.find.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.start()

    ports.assert_nothing_is_started()


@pytest.mark.requirement("P2")
async def test_a_run_belongs_to_the_team_of_its_workflow_and_is_started_by_who_sees_it(ports: Ports) -> None:
    ports.state.workflows[WORKFLOW] = [replace(STORED, definition=replace(STORED.definition, team="finance"))]
    runner = replace(a_principal(Role.RUNNER), teams=frozenset({"finance"}))
    outsider = replace(runner, teams=frozenset({"legal"}))

    assert (await ports.start(runner, idempotency=KEY_OF_CLIENT)).run.team == "finance"

    with refused("workflow_not_found"):
        await ports.start(outsider)
    with refused("workflow_not_found"):
        await ports.start(outsider, idempotency=KEY_OF_CLIENT)
    assert len(ports.state.workflow_runs) == 1
