"""OpenGatewaySession: who may open which tools, for how long, and what is stored of it."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.open_session import (
    MAX_TTL_S,
    OpenedGatewaySession,
    OpenGatewaySession,
    OpenGatewaySessionCommand,
)
from application.gateway.tools.tool_nodes import ChosenNodes, ToolNodes
from application.mcp.oauth_client import PublicAddress
from application.runs.ports import RunReader
from domain.audit.event import AuditAction
from domain.errors import conflict
from domain.gateway.session import SESSION_TOKEN_PREFIX, ToolNames
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.ids import WorkflowRunId
from domain.runs.run import RunStatus
from domain.tools.capabilities import ToolType
from tests.builders import AGENT, ORG, RUN, START, THREAD, a_run, after, an_agent
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import some_nodes
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

NODES = some_nodes("files")
OF_NODES: dict[str, Any] = {"agent": None, "workflow_run_id": NODES.workflow_run_id, "node_ids": ("files",)}


class Ports:
    """Mocks of what `OpenGatewaySession` calls: the agent `researcher` has one server, and a run
    that has not ended."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.sessions: MockType = mocker.create_autospec(GatewaySessionStore, instance=True)
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.find.return_value = self.agents.get.return_value = an_agent(mcp_servers=("files",))
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.runs.get.return_value = a_run()
        self.tool_nodes: MockType = mocker.create_autospec(ToolNodes, instance=True)
        self.tool_nodes.chosen.return_value = ChosenNodes(
            nodes=NODES, agent="researcher", is_one_server=True, team=None
        )
        self.address: MockType = mocker.create_autospec(PublicAddress, instance=True)
        self.address.url = "https://dragoman.example"

    async def open(self, **command: Any) -> OpenedGatewaySession:
        """Open the tools of `researcher`, unless `command` says otherwise."""
        opening = OpenGatewaySession(
            sessions=self.sessions,
            agents=self.agents,
            runs=self.runs,
            tool_nodes=self.tool_nodes,
            address=self.address,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        defaults: dict[str, Any] = {"principal": a_principal(Role.OPERATOR), "agent": "researcher"}
        return await opening.execute(OpenGatewaySessionCommand(**(defaults | command)))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what is opened ---


@pytest.mark.requirement("F5")
async def test_a_session_has_the_agents_tools_until_its_time_is_up(ports: Ports) -> None:
    opened = await ports.open(ttl_s=60)

    session = opened.session
    assert (session.agent_id, session.organization_id, session.created_by) == (AGENT, ORG, "key_operator")
    assert (session.created_at, session.expires_at) == (START, after(60))
    assert opened.url == "https://dragoman.example/mcp"
    assert ports.sessions.add.await_args.args[0] is session


@pytest.mark.requirement("F5")
async def test_only_a_hash_of_the_token_is_stored(ports: Ports) -> None:
    opened = await ports.open()

    assert opened.token.startswith(SESSION_TOKEN_PREFIX)
    assert opened.session.token_hash == hash_token(opened.token)
    assert opened.token not in repr(opened)
    assert opened.token not in str(ports.sessions.add.await_args)


@pytest.mark.requirement("C5", "F5")
async def test_an_opened_session_is_audited(ports: Ports) -> None:
    opened = await ports.open(agent=None, run_id=RUN)

    audit = ports.sessions.add.await_args.args[1]
    assert (audit.action, audit.actor, audit.resource) == (
        AuditAction.GATEWAY_SESSION_CREATED,
        "key_operator",
        opened.session.id,
    )
    assert audit.details == {"agent_id": AGENT, "names": "namespaced", "run_id": RUN}


@pytest.mark.requirement("P2")
async def test_the_thread_of_a_session_of_tool_nodes_belongs_to_the_team_of_the_workflow_run(ports: Ports) -> None:
    ports.tool_nodes.chosen.return_value = replace(ports.tool_nodes.chosen.return_value, team="finance")

    await ports.open(**OF_NODES)

    assert ports.sessions.add.await_args.kwargs["thread"].team == "finance"


@pytest.mark.requirement("P2")
async def test_an_agent_that_the_workflow_may_not_use_opens_none_of_its_tools(ports: Ports) -> None:
    theirs = an_agent(mcp_servers=("files",))
    ports.agents.find.return_value = replace(theirs, config=replace(theirs.config, team="legal"))
    ports.tool_nodes.chosen.return_value = replace(ports.tool_nodes.chosen.return_value, team="finance")

    with refused("agent_not_found"):
        await ports.open(**OF_NODES, principal=a_principal())

    ports.sessions.add.assert_not_awaited()


async def test_a_session_of_an_agent_has_a_thread_of_its_own(ports: Ports) -> None:
    session = (await ports.open()).session

    thread = ports.sessions.add.await_args.kwargs["thread"]
    assert (thread.id, thread.organization_id) == (session.thread_id, ORG)
    assert thread.metadata == {"gateway_session_id": session.id}


@pytest.mark.requirement("F5")
async def test_a_session_of_a_run_shares_its_thread_and_ends_with_it(ports: Ports) -> None:
    session = (await ports.open(agent=None, run_id=RUN)).session

    assert (session.run_id, session.thread_id, session.ends_with_another) == (RUN, THREAD, True)
    assert ports.sessions.add.await_args.kwargs["thread"] is None
    ports.runs.get.assert_awaited_once_with(ORG, RUN)


@pytest.mark.requirement("F5")
async def test_a_session_of_tool_nodes_has_exactly_these_and_ends_with_their_workflow_run(ports: Ports) -> None:
    session = (await ports.open(**OF_NODES)).session

    assert (session.wired, session.run_id, session.ends_with_another) == (NODES, None, True)
    assert ports.sessions.add.await_args.kwargs["thread"].id == session.thread_id
    ports.tool_nodes.chosen.assert_awaited_once_with(a_principal(Role.OPERATOR), NODES.workflow_run_id, ("files",))


async def test_a_service_that_listens_nowhere_names_no_url(ports: Ports) -> None:
    ports.address.url = None
    assert (await ports.open()).url is None


# --- what is not opened ---


@pytest.mark.requirement("F5")
async def test_a_runner_may_not_open_a_session(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.open(principal=a_principal(Role.RUNNER))

    ports.agents.find.assert_not_awaited()
    ports.sessions.add.assert_not_awaited()


@pytest.mark.requirement("C1", "F5")
async def test_tools_of_a_disabled_agent_are_not_opened(ports: Ports) -> None:
    ports.agents.find.return_value = an_agent(enabled=False)

    with refused("agent_disabled"):
        await ports.open()

    ports.sessions.add.assert_not_awaited()


async def test_an_agent_that_is_not_there_is_not_opened(ports: Ports) -> None:
    ports.agents.find.return_value = None

    with refused("agent_not_found"):
        await ports.open()

    ports.sessions.add.assert_not_awaited()


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.HALTED])
async def test_tools_of_a_run_that_has_ended_are_not_opened(ports: Ports, status: RunStatus) -> None:
    ports.runs.get.return_value = a_run(status=status)

    with refused("run_ended"):
        await ports.open(agent=None, run_id=RUN)

    ports.sessions.add.assert_not_awaited()


async def test_a_run_that_is_not_there_is_not_opened(ports: Ports) -> None:
    ports.runs.get.return_value = None

    with refused("run_not_found"):
        await ports.open(agent=None, run_id=RUN)

    ports.sessions.add.assert_not_awaited()


async def test_tools_of_a_workflow_run_that_has_ended_are_not_opened(ports: Ports) -> None:
    ports.tool_nodes.chosen.side_effect = conflict("workflow_run_ended", "The workflow run has ended.")

    with refused("workflow_run_ended"):
        await ports.open(**OF_NODES)

    ports.sessions.add.assert_not_awaited()


@pytest.mark.parametrize(
    "wrong",
    [
        {"agent": None},
        {"run_id": RUN},
        {"workflow_run_id": WorkflowRunId("wfr_1"), "node_ids": ()},
        {"node_ids": ()},
        {"agent": None, "workflow_run_id": WorkflowRunId("wfr_1")},
        {"ttl_s": 0},
        {"ttl_s": MAX_TTL_S + 1},
    ],
    ids=["nobody's", "two", "two with nodes", "nodes of nothing", "workflow without nodes", "no time", "too long"],
)
async def test_a_session_that_is_not_valid_is_not_opened(ports: Ports, wrong: dict[str, Any]) -> None:
    with refused("gateway_session_invalid"):
        await ports.open(**wrong)

    ports.sessions.add.assert_not_awaited()


# --- original names ---


async def test_one_server_and_nothing_else_may_have_its_original_names(ports: Ports) -> None:
    assert (await ports.open(names=ToolNames.ORIGINAL)).session.names is ToolNames.ORIGINAL
    assert (await ports.open(names=ToolNames.ORIGINAL, **OF_NODES)).session.names is ToolNames.ORIGINAL


@pytest.mark.parametrize(
    "changed",
    [{"mcp_servers": ("files", "clock")}, {"mcp_servers": ()}, {"tools": (ToolType.SOURCE_QUERY,)}],
    ids=["two servers", "no server", "a native tool"],
)
async def test_more_or_less_than_one_server_has_no_original_names(ports: Ports, changed: dict[str, Any]) -> None:
    agent = an_agent(mcp_servers=("files",))
    ports.agents.find.return_value = replace(agent, config=replace(agent.config, **changed))

    with refused("gateway_session_invalid"):
        await ports.open(names=ToolNames.ORIGINAL)

    ports.sessions.add.assert_not_awaited()


async def test_nodes_that_are_not_one_server_have_no_original_names(ports: Ports) -> None:
    ports.tool_nodes.chosen.return_value = ChosenNodes(nodes=NODES, agent="researcher", is_one_server=False, team=None)

    with refused("gateway_session_invalid"):
        await ports.open(names=ToolNames.ORIGINAL, **OF_NODES)


async def test_a_run_of_a_workflow_has_no_original_names(ports: Ports) -> None:
    ports.runs.get.return_value = replace(a_run(), wired=NODES)

    with refused("gateway_session_invalid"):
        await ports.open(agent=None, run_id=RUN, names=ToolNames.ORIGINAL)


# --- failures ---


async def test_no_token_is_given_for_a_session_that_cannot_be_stored(ports: Ports) -> None:
    ports.sessions.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.open()
