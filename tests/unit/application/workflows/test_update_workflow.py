"""UpdateWorkflow: what becomes a new version, and what is refused before that."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.system.changes import Changes
from application.workflows.create_workflow import SavedWorkflow
from application.workflows.ports import WorkflowStore
from application.workflows.update_workflow import UpdateWorkflow, UpdateWorkflowCommand
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import WorkflowId
from domain.json_value import JsonObject
from domain.workflows.graph import Edge, NodeDefinition, Workflow
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, START, after
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.group_builders import a_group
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.workflow_builders import a_workflow, a_workflow_run, edge, entrypoint, transform, workflow

STORED = a_workflow(entrypoint(), transform("end"), "start -> end", version=2)
NODES = (entrypoint(), transform("end", "name"))
EDGES = (edge("start -> end"), edge("start -> other"))
CHECKED = CheckedWorkflow(plan=None, faults=(), warnings=())


class Ports:
    """The workflow `story` at version 2; each workflow that is checked is valid."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.state.workflows[STORED.id] = [STORED]
        self.workflows: WorkflowStore = InMemoryWorkflowStore(self.state)
        self.checks: MockType = mocker.create_autospec(WorkflowChecks, instance=True)
        self.checks.require.return_value = self.checks.check.return_value = CHECKED

    async def update(
        self,
        principal: Principal | None = None,
        *,
        workflow: str = "story",
        name: str | None = None,
        nodes: tuple[NodeDefinition, ...] | None = None,
        edges: tuple[Edge, ...] | None = None,
        text: str | None = None,
        expected_version: int | None = None,
        changes: Changes | None = None,
    ) -> SavedWorkflow:
        given: dict[str, object] = {"name": name, "nodes": nodes, "edges": edges}
        clock = FixedClock(after(60))
        updating = UpdateWorkflow(workflows=self.workflows, checks=self.checks, clock=clock, ids=SequentialIds())
        return await updating.execute(
            UpdateWorkflowCommand(
                principal=principal or a_principal(),
                workflow=workflow,
                changes={part: value for part, value in given.items() if value is not None} | dict(changes or {}),
                text=text,
                expected_version=expected_version,
            )
        )

    def assert_nothing_is_stored(self) -> None:
        assert self.state.workflows[STORED.id] == [STORED]
        assert self.state.audit == {}


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.parametrize("called", ["story", STORED.id])
async def test_a_change_is_stored_as_the_next_version_and_the_earlier_ones_stay(ports: Ports, called: str) -> None:
    saved = await ports.update(workflow=called, nodes=NODES)

    changed = saved.workflow
    assert (changed.id, changed.version, changed.definition.nodes) == (STORED.id, 3, NODES)
    assert (changed.created_at, changed.updated_at) == (START, after(60))
    assert saved.checked is CHECKED
    assert ports.state.workflows[STORED.id] == [STORED, changed]


async def test_parts_that_are_not_given_stay(ports: Ports) -> None:
    changed = (await ports.update(name="tale")).workflow.definition
    assert (changed.name, changed.nodes, changed.edges) == ("tale", STORED.definition.nodes, STORED.definition.edges)


async def test_nodes_and_edges_are_replaced_as_wholes(ports: Ports) -> None:
    changed = (await ports.update(nodes=(entrypoint(),), edges=())).workflow.definition
    assert (changed.name, changed.nodes, changed.edges) == ("story", (entrypoint(),), ())


async def test_a_run_that_was_started_before_keeps_the_version_it_began_with(ports: Ports) -> None:
    runs = InMemoryWorkflowRunStore(ports.state, InProcessWakeups())
    ports.state.workflows[STORED.id] = [a_workflow(entrypoint()), STORED]
    begun_at_version_1 = a_workflow_run()

    await ports.update(nodes=NODES)

    assert await runs.definition(ORG, begun_at_version_1) == workflow(entrypoint())


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "parts"),
    [
        ("tale", None, None, ["name"]),
        (None, NODES, None, ["nodes"]),
        (None, None, EDGES, ["edges"]),
        ("tale", NODES, EDGES, ["name", "nodes", "edges"]),
        ("story", NODES, STORED.definition.edges, ["nodes"]),
    ],
    ids=["name", "nodes", "edges", "all", "only nodes differ"],
)
async def test_an_update_is_audited_with_the_names_of_the_changed_parts(
    ports: Ports,
    name: str | None,
    nodes: tuple[NodeDefinition, ...] | None,
    edges: tuple[Edge, ...] | None,
    parts: list[str],
) -> None:
    await ports.update(name=name, nodes=nodes, edges=edges)

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.WORKFLOW_UPDATED, "key_admin", STORED.id)
    assert entry.details == {"name": name or "story", "version": 3, "changed": parts}


async def test_an_update_that_changes_nothing_makes_no_version_and_no_audit_entry(ports: Ports) -> None:
    saved = await ports.update(name="story", nodes=STORED.definition.nodes, edges=STORED.definition.edges)

    assert saved == SavedWorkflow(workflow=STORED, checked=CHECKED)
    ports.assert_nothing_is_stored()


@pytest.mark.requirement("U6")
async def test_another_text_of_the_same_definition_is_a_version_and_a_changed_definition_drops_the_text(
    ports: Ports,
) -> None:
    commented = (await ports.update(text="# why\nname: story")).workflow
    assert (commented.version, commented.text) == (3, "# why\nname: story")
    assert [*ports.state.audit.values()][-1].details["changed"] == ["text"]
    same = (await ports.update(text="# why\nname: story")).workflow
    assert same == commented
    assert (await ports.update()).workflow == commented
    renamed = (await ports.update(name="tale")).workflow
    assert (renamed.version, renamed.text) == (4, None)


@pytest.mark.requirement("P2")
async def test_a_workflow_is_given_to_a_team_and_back_which_the_trail_says(ports: Ports) -> None:
    group = a_group("finance")
    ports.state.organization_groups[group.id] = group
    given = (await ports.update(changes={"team": "finance"})).workflow
    assert (given.team, given.version) == ("finance", 3)
    ports.checks.require.assert_awaited_with(a_principal(), given.definition, former_team=None)
    [entry] = ports.state.audit.values()
    assert entry.details == {"name": "story", "version": 3, "changed": ["team"], "team": "finance"}
    ports.state.audit.clear()
    back = (await ports.update(changes={"team": None})).workflow
    assert (back.team, back.version) == (None, 4)
    ports.checks.require.assert_awaited_with(a_principal(), back.definition, former_team="finance")
    [entry] = ports.state.audit.values()
    changed: JsonObject = {"changed": ["team"], "team": None, "former_team": "finance"}
    assert entry.details == {"name": "story", "version": 4, **changed}


@pytest.mark.requirement("P2")
async def test_who_is_not_of_the_team_finds_no_workflow_to_change(ports: Ports) -> None:
    ports.state.workflows[STORED.id] = [replace(STORED, definition=replace(STORED.definition, team="finance"))]
    member = replace(a_principal(), custom_role="almost-all", granted=frozenset({Permission.WORKFLOWS_MANAGE}))
    with refused("workflow_not_found"):
        await ports.update(replace(member, role=Role.VIEWER, teams=frozenset({"legal"})), nodes=NODES)
    insider = replace(member, role=Role.VIEWER, teams=frozenset({"finance"}))
    assert (await ports.update(insider, nodes=NODES)).workflow.team == "finance"


@pytest.mark.requirement("F1")
async def test_the_result_as_a_whole_is_checked_and_not_stored_with_faults(ports: Ports) -> None:
    ports.checks.require.side_effect = invalid("workflow_invalid", "The workflow is not valid.")

    with refused("workflow_invalid"):
        await ports.update(edges=EDGES)

    whole = workflow(*STORED.definition.nodes, "start -> end", "start -> other")
    ports.checks.require.assert_awaited_once_with(a_principal(), whole, former_team=None)
    ports.assert_nothing_is_stored()


async def test_a_change_of_the_version_that_the_client_last_read_is_stored(ports: Ports) -> None:
    assert (await ports.update(nodes=NODES, expected_version=2)).workflow.version == 3


@pytest.mark.parametrize("expected_version", [1, 3])
async def test_another_version_than_the_client_last_read_is_a_conflict(ports: Ports, expected_version: int) -> None:
    with refused("version_conflict"):
        await ports.update(nodes=NODES, expected_version=expected_version)

    ports.checks.require.assert_not_awaited()
    ports.assert_nothing_is_stored()


async def test_a_version_stored_by_another_client_during_the_check_is_a_conflict(
    ports: Ports, mocker: MockerFixture
) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.find.return_value = STORED
    workflows.save.side_effect = ServiceError("version_conflict", ErrorKind.PRECONDITION, "It is at version 3.")

    with refused("version_conflict"):
        await ports.update(nodes=NODES)

    assert workflows.save.await_args.kwargs["expected_version"] == 2


async def test_the_name_of_another_workflow_is_refused(ports: Ports) -> None:
    other = Workflow(
        id=WorkflowId("wfl_2"),
        organization_id=ORG,
        version=1,
        definition=workflow(entrypoint(), name="taken"),
        created_at=START,
        updated_at=START,
    )
    ports.state.workflows[other.id] = [other]

    with refused("workflow_name_taken"):
        await ports.update(name="taken")

    ports.assert_nothing_is_stored()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_update_workflows(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.update(a_principal(role), nodes=NODES)

    ports.checks.require.assert_not_awaited()
    ports.assert_nothing_is_stored()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("called", ["story", STORED.id])
async def test_an_admin_of_another_organization_finds_no_workflow(ports: Ports, called: str) -> None:
    with refused("workflow_not_found"):
        await ports.update(a_stranger(), workflow=called, nodes=NODES)

    ports.assert_nothing_is_stored()


async def test_a_new_version_that_cannot_be_stored_is_not_reported_as_saved(
    ports: Ports, mocker: MockerFixture
) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.find.return_value = STORED
    workflows.save.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.update(nodes=NODES)


async def test_nothing_is_stored_if_the_check_cannot_read_what_the_workflow_names(ports: Ports) -> None:
    ports.checks.require.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.update(nodes=NODES)

    ports.assert_nothing_is_stored()
