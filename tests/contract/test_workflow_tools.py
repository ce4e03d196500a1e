"""The contract of `WorkflowToolStore`, of tools in the commits of `WorkflowJournal`, and of whoever
sees them."""

from dataclasses import replace

import pytest

from application.runs.ports import LeaseLost
from application.workflows.ports import ClaimedWorkflowRun
from domain.audit.event import AuditAction
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import GatewaySessionId, ThreadId, WorkerId, WorkflowId, WorkflowRunId
from domain.threads.thread import Thread
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.execution import NodeRun
from domain.workflows.graph import Workflow
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from tests.builders import AGENT, KEY, ORG, OTHER_ORG, a_run, a_thread, after, an_agent, an_audit_event, numbered
from tests.contract.run_steps import start_and_claim
from tests.contract.stores import Stores
from tests.workflow_builders import entrypoint, node, workflow
from tests.workflow_changes import stop_run

ID, SECOND = WorkflowRunId(numbered("wfr", 1)), WorkflowRunId(numbered("wfr", 2))
WORKFLOW = WorkflowId(numbered("wfl", 1))
DEFINITION = workflow(entrypoint(), node("ask", "human_input", prompt="?"), "start -> ask")


def nodes(*node_ids: str, run_id: WorkflowRunId = ID) -> WiredNodes:
    return WiredNodes(workflow_run_id=run_id, node_ids=node_ids)


def a_tool(node_id: str, run_id: WorkflowRunId = ID, *, sealed: bytes = b"\x00\xffsealed") -> RegisteredTool:
    return RegisteredTool(
        organization_id=ORG,
        workflow_run_id=run_id,
        node_id=node_id,
        kind="http_request",
        sealed=sealed,
        registered_at=after(5),
    )


async def claimed(stores: Stores, run_id: WorkflowRunId = ID, *, at: float = 2) -> ClaimedWorkflowRun:
    taken = await stores.workflow_journal.claim(run_id, WorkerId("worker_1"), lease_s=10, at=after(at))
    assert taken is not None
    return taken


async def started(stores: Stores, number: int = 1) -> ClaimedWorkflowRun:
    if number == 1:
        saved = Workflow(
            id=WORKFLOW, organization_id=ORG, version=1, definition=DEFINITION, created_at=after(0), updated_at=after(0)
        )
        await stores.workflows.add(saved, an_audit_event(900, action=AuditAction.WORKFLOW_CREATED))
    run = WorkflowRun(
        id=WorkflowRunId(numbered("wfr", number)),
        organization_id=ORG,
        workflow_id=WORKFLOW,
        workflow_version=1,
        status=WorkflowRunStatus.QUEUED,
        input=None,
        requested_by=KEY,
        created_at=after(number),
    )
    await stores.workflow_runs.start(run, an_audit_event(number, action=AuditAction.WORKFLOW_RUN_STARTED))
    return await claimed(stores, run.id)


async def registered(stores: Stores, taken: ClaimedWorkflowRun, *tools: RegisteredTool) -> WorkflowRun:
    ready = {tool.node_id: NodeRun(node_id=tool.node_id).started(at=after(4)).ready(at=after(5)) for tool in tools}
    run = replace(taken.run, nodes={**taken.run.nodes, **ready})
    return await stores.workflow_journal.commit(taken.lease, run, at=after(5), registered=tools)


@pytest.mark.requirement("F2")
async def test_tools_come_with_the_commit_that_says_they_are_ready_and_are_found_as_they_are_asked_for(
    stores: Stores,
) -> None:
    taken = await started(stores)
    assert await stores.workflow_tools.of(ORG, nodes("a", "b")) == ()
    await registered(stores, taken, a_tool("a"), a_tool("b"), a_tool("c"))
    assert await stores.workflow_tools.of(ORG, nodes("c", "x", "a")) == (a_tool("c"), a_tool("a"))


@pytest.mark.requirement("F3")
async def test_no_nodes_are_no_tools(stores: Stores) -> None:
    await registered(stores, await started(stores), a_tool("a"))
    assert await stores.workflow_tools.of(ORG, nodes()) == ()


@pytest.mark.requirement("F6")
async def test_what_is_bound_to_expired_tools_is_removed_and_the_tools_stay_known(stores: Stores) -> None:
    soon, later = (replace(a_tool(name), bound=b"bound", expires_at=after(at)) for name, at in (("a", 60), ("b", 61)))
    server = replace(a_tool("c"), kind="mcp_server")
    await registered(stores, await started(stores), soon, later, server)
    assert await stores.expiring_tools.expire(ORG, after(59), limit=10) == 0
    assert await stores.expiring_tools.expire(OTHER_ORG, after(100), limit=10) == 0
    assert await stores.expiring_tools.expire(ORG, after(60), limit=10) == 1
    assert await stores.workflow_tools.of(ORG, nodes("a", "b", "c")) == (replace(soon, bound=None), later, server)
    assert await stores.expiring_tools.expire(ORG, after(100), limit=10) == 1
    assert await stores.expiring_tools.expire(ORG, after(100), limit=10) == 0


@pytest.mark.requirement("F6")
async def test_tools_expire_in_batches(stores: Stores) -> None:
    tools = [replace(a_tool(name), bound=b"bound", expires_at=after(60)) for name in ("a", "b", "c")]
    await registered(stores, await started(stores), *tools)
    assert [await stores.expiring_tools.expire(ORG, after(60), limit=2) for _ in range(3)] == [2, 1, 0]


@pytest.mark.requirement("C6")
async def test_tools_are_their_organizations_alone(stores: Stores) -> None:
    await registered(stores, await started(stores), a_tool("a"))
    assert await stores.workflow_tools.of(OTHER_ORG, nodes("a")) == ()


async def test_a_tool_that_is_registered_once_more_takes_the_place_of_the_former(stores: Stores) -> None:
    taken = await started(stores)
    await registered(stores, taken, a_tool("a"))
    await registered(stores, taken, a_tool("a", sealed=b"other"))
    assert await stores.workflow_tools.of(ORG, nodes("a")) == (a_tool("a", sealed=b"other"),)


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("status", [WorkflowRunStatus.COMPLETED, WorkflowRunStatus.FAILED, WorkflowRunStatus.CANCELLED])
async def test_the_commit_that_ends_a_run_removes_its_tools_and_no_others(
    stores: Stores, status: WorkflowRunStatus
) -> None:
    first, second = await started(stores), await started(stores, 2)
    run = await registered(stores, first, a_tool("a"))
    await registered(stores, second, a_tool("a", SECOND))
    late = (a_tool("b"),)
    await stores.workflow_journal.commit(first.lease, run.ended(status, at=after(7)), at=after(7), registered=late)
    assert await stores.workflow_tools.of(ORG, nodes("a", "b")) == ()
    assert await stores.workflow_tools.of(ORG, nodes("a", run_id=SECOND)) == (a_tool("a", SECOND),)


@pytest.mark.requirement("F6")
async def test_a_stop_that_ends_a_waiting_run_removes_its_tools(stores: Stores) -> None:
    taken = await started(stores)
    run = await registered(stores, taken, a_tool("a"))
    await stores.workflow_journal.commit(taken.lease, run.suspended(wake_at=None), at=after(6))
    assert await stores.workflow_tools.of(ORG, nodes("a")) == (a_tool("a"),)
    stop = an_audit_event(9, action=AuditAction.WORKFLOW_RUN_STOPPED)
    stopped = await stop_run(stores.workflow_runs, ORG, ID, actor="key_x", at=after(7), audit=stop)
    assert stopped is not None
    assert stopped.status is WorkflowRunStatus.CANCELLED
    assert await stores.workflow_tools.of(ORG, nodes("a")) == ()


@pytest.mark.requirement("E4", "F6")
async def test_a_worker_whose_run_was_taken_from_it_registers_nothing(stores: Stores) -> None:
    taken = await started(stores)
    await stores.workflow_journal.recoverable(at=after(60), limit=9)
    await claimed(stores, at=61)
    with pytest.raises(LeaseLost):
        await registered(stores, taken, a_tool("a"))
    assert await stores.workflow_tools.of(ORG, nodes("a")) == ()


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("wired", [None, nodes(), nodes("a", "b")])
async def test_a_run_knows_which_tools_are_wired_to_it(stores: Stores, wired: WiredNodes | None) -> None:
    await stores.threads.add(a_thread())
    await stores.agents.add(an_agent(), an_audit_event(51))
    taken = await start_and_claim(stores, replace(a_run(), wired=wired))
    assert taken.run.wired == wired
    stored = await stores.runs.get(ORG, taken.run.id)
    assert stored is not None
    assert stored.wired == wired


@pytest.mark.requirement("F5", "F6")
async def test_a_session_over_tools_of_a_workflow_run_is_over_when_that_ends(stores: Stores) -> None:
    taken = await started(stores)
    thread = Thread(id=ThreadId(numbered("thr", 77)), organization_id=ORG, metadata={}, created_at=after(0))
    session = GatewaySession(
        id=GatewaySessionId(numbered("gws", 1)),
        organization_id=ORG,
        agent_id=AGENT,
        thread_id=thread.id,
        names=ToolNames.NAMESPACED,
        token_hash="hash-1",
        created_by=KEY,
        created_at=after(3),
        expires_at=after(3600),
        wired=nodes("a", "b"),
    )
    created = an_audit_event(50, action=AuditAction.GATEWAY_SESSION_CREATED)
    await stores.gateway_sessions.add(session, created, thread=thread)
    assert await stores.gateway_sessions.by_token_hash("hash-1") == session
    ended = taken.run.ended(WorkflowRunStatus.COMPLETED, at=after(7))
    await stores.workflow_journal.commit(taken.lease, ended, at=after(7))
    for found in (
        await stores.gateway_sessions.by_token_hash("hash-1"),
        await stores.gateway_sessions.get(ORG, session.id),
    ):
        assert found == replace(session, revoked_at=after(7))
