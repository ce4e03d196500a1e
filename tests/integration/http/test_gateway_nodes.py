"""Gateway sessions over nodes of a workflow run: what they open, whose policies hold, what is
refused, and their end."""

from dataclasses import replace

import pytest

from application.workflows.ports import ClaimedWorkflowRun
from application.workflows.sealed_tools import SealedServer
from domain.audit.event import AuditAction
from domain.ids import WorkerId, WorkflowRunId
from domain.tools.wired import RegisteredTool
from domain.workflows.execution import NodeRun
from domain.workflows.run import WorkflowRunStatus
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, after
from tests.composition import BOX_KEY
from tests.integration.http.gateway_caller import ECHO, Caller, actions, an_agent, opened
from tests.integration.http.service import OTHER_ADMIN, Service, problem_of
from tests.integration.http.test_workflows import STORY


@pytest.fixture
async def run_id(service: Service) -> str:
    """A run of the story, whose servers and agents there are; the agent `guide` may use nothing of
    its own."""
    await an_agent(service)
    await an_agent(service, "guide", mcp_servers=[], tools=[])
    await service.call("POST", "/v1/secrets", json={"name": "WEATHER_KEY", "value": "a value nobody sees"})
    assert (await service.call("POST", "/v1/workflows", json=STORY)).status_code == 201
    started = await service.call("POST", "/v1/workflows/story/runs", json={})
    assert started.status_code == 202, started.text
    return str(started.json()["id"])


async def registered(service: Service, run_id: str) -> ClaimedWorkflowRun:
    """The run in progress, its server `files` ready."""
    taken = await service.stores.workflow_journal.claim(
        WorkflowRunId(run_id), WorkerId("worker_1"), lease_s=60, at=after(1)
    )
    assert taken is not None
    tool = RegisteredTool(
        organization_id=ORG,
        workflow_run_id=taken.run.id,
        node_id="files",
        kind="mcp_server",
        sealed=SealedServer(slug="files").sealed(SecretBox([BOX_KEY])),
        registered_at=after(2),
    )
    ready = NodeRun(node_id="files").started(at=after(2)).ready(at=after(2))
    run = replace(taken.run, nodes={"files": ready})
    run = await service.stores.workflow_journal.commit(taken.lease, run, at=after(2), registered=(tool,))
    return replace(taken, run=run)


async def names(caller: Caller) -> list[str]:
    listed = (await caller.legacy("tools/list"))["result"]
    assert isinstance(listed, dict)
    return [tool["name"] for tool in listed["tools"]]


@pytest.mark.requirement("F3", "F5")
async def test_a_session_has_the_tools_of_its_nodes_and_refuses_others_audited(service: Service, run_id: str) -> None:
    await registered(service, run_id)
    of_files = await opened(service, workflow_run_id=run_id, node_ids=["files"])
    of_write = await opened(service, workflow_run_id=run_id, node_ids=["write"])
    of_research = await opened(service, workflow_run_id=run_id, node_ids=["research"])
    of_nothing = await opened(service, workflow_run_id=run_id, node_ids=[])
    assert [await names(caller) for caller in (of_files, of_write, of_research, of_nothing)] == [[ECHO], [ECHO], [], []]
    sessions = (await service.call("GET", "/v1/gateway-sessions")).json()["data"]
    assert [session["node_ids"] for session in reversed(sessions)] == [["files"], ["files"], ["weather"], []]
    assert (await of_write.legacy("tools/call", {"name": ECHO}))["result"]
    for caller in (of_research, of_nothing):
        refused = await caller.legacy("tools/call", {"name": ECHO})
        assert refused["error"]["code"] == -32602  # type: ignore[index]
    assert (await actions(service)).count(AuditAction.TOOL_FAILED) == 2


@pytest.mark.requirement("F5", "F6")
async def test_a_session_ends_with_its_workflow_run(service: Service, run_id: str) -> None:
    taken = await registered(service, run_id)
    caller = await opened(service, workflow_run_id=run_id, node_ids=["files"])
    ended = taken.run.ended(WorkflowRunStatus.COMPLETED, at=after(9))
    await service.stores.workflow_journal.commit(taken.lease, ended, at=after(9))
    response = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert response.status_code == 401
    (listed,) = (await service.call("GET", "/v1/gateway-sessions")).json()["data"]
    assert (listed["workflow_run_id"], listed["node_ids"]) == (run_id, ["files"])
    assert listed["revoked_at"] is not None
    body = {"workflow_run_id": run_id, "node_ids": ["files"]}
    problem_of(await service.call("POST", "/v1/gateway-sessions", json=body), 409, "workflow_run_ended")


@pytest.mark.requirement("F5")
async def test_the_policies_of_the_agent_that_the_nodes_are_wired_to_hold(service: Service, run_id: str) -> None:
    await registered(service, run_id)
    await service.call("PATCH", "/v1/agents/guide", json={"tool_policies": {ECHO: {"decision": "deny"}}})
    caller = await opened(service, workflow_run_id=run_id, node_ids=["files"])
    assert await names(caller) == []
    denied = (await caller.legacy("tools/call", {"name": ECHO}))["result"]
    assert isinstance(denied, dict)
    assert "blocked by policy" in denied["content"][0]["text"]


@pytest.mark.requirement("F5")
async def test_one_server_may_be_had_by_its_own_names(service: Service, run_id: str) -> None:
    await registered(service, run_id)
    caller = await opened(service, workflow_run_id=run_id, node_ids=["files"], names="original")
    assert await names(caller) == ["echo"]
    body = {"workflow_run_id": run_id, "node_ids": ["weather"], "names": "original"}
    problem_of(await service.call("POST", "/v1/gateway-sessions", json=body), 422, "gateway_session_invalid")


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "node_ids",
    [["nowhere"], ["start"], ["files", "files"], ["weather", "files"], ["research", "files"], ["research", "write"]],
)
async def test_nodes_that_are_not_tools_of_one_agent_are_refused(
    service: Service, run_id: str, node_ids: list[str]
) -> None:
    body = {"workflow_run_id": run_id, "node_ids": node_ids}
    problem_of(await service.call("POST", "/v1/gateway-sessions", json=body), 422, "node_ids_invalid")


@pytest.mark.requirement("C6", "F5")
async def test_what_does_not_say_whose_tools_are_opened_is_refused(service: Service, run_id: str) -> None:
    for body in (
        {"workflow_run_id": run_id},
        {"node_ids": ["files"], "agent_id": "toolbox"},
        {"workflow_run_id": run_id, "node_ids": [], "agent_id": "toolbox"},
    ):
        problem_of(await service.call("POST", "/v1/gateway-sessions", json=body), 422, "gateway_session_invalid")
    there = {"workflow_run_id": run_id, "node_ids": []}
    foreign = await service.call("POST", "/v1/gateway-sessions", json=there, token=OTHER_ADMIN)
    problem_of(foreign, 404, "workflow_run_not_found")
