"""Nodes in tool mode: what they become, what of them agents see, and what calls of them send."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.ports import NativeToolContext, NativeToolError
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from application.workflows.http_request import HttpAnswer, HttpCall, HttpRequests
from application.workflows.http_step import BoundInputs
from application.workflows.node_execution import NodeContext, NodeFailed
from application.workflows.stored_wired_tools import CallComponent, StoredWiredTools
from application.workflows.tool_step import ToolStep, inline_server_id
from domain.agents.agent import AgentConfig
from domain.ids import McpServerId, RunId, ThreadId, ToolCallId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.secrets.secret import Secret
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from domain.tools.wired import RegisteredTool, WiredNodes
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import NodeDefinition
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import KEY, ORG, START, a_server, after, an_audit_event, an_organization, numbered
from tests.circumstances import circumstances
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds, StepClock
from tests.mcp_builders import ACCOUNTS
from tests.unit.application.runs.doubles import InMemoryNativeTool
from tests.workflow_builders import agent, entrypoint, node, planned, tool

RUN, OTHER_RUN = WorkflowRunId("wfr_1"), WorkflowRunId("wfr_2")
TOKEN = "token-that-nobody-sees"
CONFIG = AgentConfig(name="guide", model="scripted:x.yaml", mcp_servers=("files",))
CALL = NativeToolContext(
    organization_id=ORG,
    thread_id=ThreadId("thr_1"),
    run_id=RunId("run_1"),
    tool_call_id=ToolCallId("call_1"),
    timeout_s=9,
)
INLINE: JsonObject = {"slug": "desk", "kind": "custom", "command": "desk", "env": {"KEY": {"secret": "WEATHER_TOKEN"}}}


@dataclass
class Answering:
    """A server on the web."""

    status: int = 200
    text: str = '{"sky": "clear"}'
    asked: list[HttpCall] = field(default_factory=list)

    async def send(self, call: HttpCall) -> HttpAnswer:
        self.asked.append(call)
        return HttpAnswer(status=self.status, media_type="application/json", text=self.text)


@dataclass
class Stored:
    """Registered tools, and how often they were read."""

    tools: dict[tuple[WorkflowRunId, str], RegisteredTool] = field(default_factory=dict)
    reads: int = 0

    async def of(self, organization_id: str, nodes: WiredNodes) -> tuple[RegisteredTool, ...]:
        self.reads += 1
        wanted = ((nodes.workflow_run_id, node_id) for node_id in nodes.node_ids)
        return tuple(self.tools[key] for key in wanted if key in self.tools)


async def no_run(node_id: str, run_id: RunId) -> None:
    raise AssertionError("a tool is no run")


class Harness:
    """A workflow run's tools over in-memory stores: registered, seen, called."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.organizations = {ORG: an_organization(ORG)}
        self.secrets, self.servers = InMemorySecretStore(self.state), InMemoryMcpServerStore(self.state)
        self.connections = InMemoryMcpConnections()
        self.web, self.stored = Answering(), Stored()
        self.box = box = SecretBox(["a key"])
        expressions, self.clock = JmesPathExpressions(), FixedClock()
        catalogs = InMemoryMcpCatalogStore(self.state)
        catalog_updater = CatalogUpdater(
            catalogs=catalogs,
            connections=self.connections,
            organizations=InMemoryOrganizationStore(self.state),
            clock=StepClock(),
            ids=SequentialIds(),
        )
        warm = CatalogReader(catalogs=catalogs, catalog_updater=catalog_updater, clock=self.clock)
        switch = McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(self.state))
        self.step = ToolStep(
            inputs=BoundInputs(secrets=self.secrets, expressions=expressions),
            agents=InMemoryAgentStore(self.state),
            organizations=InMemoryOrganizationStore(self.state),
            servers=self.servers,
            catalogs=warm,
            connections=self.connections,
            switch=switch,
            box=box,
            clock=self.clock,
            tool_ttl_s=3_600,
        )
        self.catalog = ToolsetBuilder(
            circumstances=circumstances(self.state, self.clock),
            native_tools={ToolType.CODE_EXECUTION: InMemoryNativeTool("2")},
            displayable_tools={tool.type: tool for tool in DISPLAYABLE_TOOLS},
            servers=self.servers,
            catalogs=warm,
            connections=self.connections,
            switch=switch,
            organizations=InMemoryOrganizationStore(self.state),
            wired_tools=StoredWiredTools(tools=self.stored, box=box),
        )
        self.execute = ExecuteMcpTool(
            servers=self.servers,
            catalogs=catalogs,
            catalog_updater=catalog_updater,
            connections=self.connections,
            schemas=JsonSchemaValidator(),
            switch=switch,
            accounts=ACCOUNTS,
        )
        requests = HttpRequests(caller=self.web, expressions=expressions)
        self.calls = CallComponent(requests=requests, secrets=self.secrets, box=box, clock=self.clock)

    async def with_token(self) -> "Harness":
        secret = Secret(organization_id=ORG, name="WEATHER_TOKEN", created_at=START, updated_at=START)
        await self.secrets.put(secret, TOKEN, an_audit_event(1))
        return self

    async def server(
        self, slug: str, *tools: str, enabled: bool = True, unreachable: McpFailure | None = None
    ) -> McpServer:
        answers = {name: InMemoryTool(answer=text_reply("ok")) for name in tools}
        self.connections.servers[slug] = InMemoryMcpServer(tools=answers, unreachable=unreachable)
        number = len(self.state.servers) + 10
        config = McpServerConfig(slug=slug, kind=McpServerKind.CUSTOM, command="server", enabled=enabled)
        server = a_server(McpServerId(numbered("mcp", number)), config=config)
        await self.servers.add(server, an_audit_event(number))
        return server

    async def register(
        self,
        definition: NodeDefinition,
        *,
        run_id: WorkflowRunId = RUN,
        outputs: Mapping[str, JsonValue] | None = None,
        team: str | None = None,
    ) -> RegisteredTool:
        plan = planned(entrypoint(), agent("guide"), definition, "start -> guide", f"{definition.id} -> guide.tools")
        context = NodeContext(
            organization_id=ORG,
            workflow_run_id=run_id,
            requested_by=KEY,
            run_input=None,
            team=team,
            nodes={
                node_id: NodeRun(node_id=node_id, status=NodeStatus.SUCCEEDED, output=output)
                for node_id, output in (outputs or {}).items()
            },
            note_run=no_run,
            note_audit=lambda entry: None,
        )
        made = (await self.step.execute(plan.by_id[definition.id], NodeRun(node_id=definition.id), context)).tool
        self.stored.tools[run_id, definition.id] = made
        return made

    async def seen(self, *node_ids: str, run_id: WorkflowRunId = RUN, config: AgentConfig = CONFIG) -> Toolset:
        wired = WiredNodes(workflow_run_id=run_id, node_ids=node_ids)
        return await self.catalog.toolset(config, ConnectionScope(organization_id=ORG), wired=wired)

    async def call(self, found: Tool | None, arguments: JsonObject) -> JsonValue:
        assert found is not None
        assert found.component is not None
        return (await self.calls.call(found.component, arguments, CALL)).value


@pytest.fixture
async def harness() -> Harness:
    return await Harness().with_token()


@pytest.mark.requirement("F2")
async def test_a_model_sees_of_a_component_only_what_is_exposed(harness: Harness) -> None:
    made = await harness.register(tool("weather"))
    (shown,) = (await harness.seen("weather")).shown
    assert (shown.name, shown.description) == ("weather", "The weather in a city.")
    assert shown.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    assert TOKEN not in f"{made}{shown}{made.sealed!r}"


@pytest.mark.requirement("F2")
async def test_a_call_sends_what_is_bound_and_brings_nothing_of_it_back(harness: Harness) -> None:
    harness.web.text = f'{{"you_sent": "{TOKEN}"}}'
    await harness.register(tool("weather"))
    found = (await harness.seen("weather")).find("weather")
    answer = await harness.call(found, {"city": "Ulm/../x", "token": "the model's"})
    (sent,) = harness.web.asked
    assert sent.url == "https://weather.example/Ulm%2F..%2Fx"
    assert dict(sent.headers)["Authorization"] == f"Bearer {TOKEN}"
    assert answer == {"status": 200, "media_type": "application/json", "body": {"you_sent": "[hidden]"}}


@pytest.mark.requirement("A5", "F2")
async def test_what_a_server_says_of_a_refusal_reaches_the_model_without_the_secrets(harness: Harness) -> None:
    harness.web.status, harness.web.text = 404, f"no such city for {TOKEN}"
    await harness.register(tool("weather"))
    with pytest.raises(NativeToolError) as failed:
        await harness.call((await harness.seen("weather")).find("weather"), {"city": "Atlantis"})
    assert failed.value.code == "http_status"
    assert failed.value.message == "The server answered HTTP 404. no such city for [hidden]"


@pytest.mark.requirement("C7", "F2")
@pytest.mark.parametrize(
    "definition",
    [
        tool("weather"),
        tool(
            "weather",
            headers={"Authorization": {"secret": "WEATHER_TOKEN"}},
            inputs={"city": {"type": "string"}},
            tool={"name": "weather", "description": "The weather in a city.", "exposed": ["city"]},
        ),
    ],
    ids=["bound to an input", "in a header"],
)
async def test_the_next_call_of_a_component_sends_the_new_value_of_a_secret(
    harness: Harness, definition: NodeDefinition
) -> None:
    made = await harness.register(definition)
    found = (await harness.seen("weather")).find("weather")
    await harness.call(found, {"city": "Ulm"})
    secret = Secret(organization_id=ORG, name="WEATHER_TOKEN", created_at=START, updated_at=START)
    await harness.secrets.put(secret, "another", an_audit_event(2))
    harness.web.text = '{"you_sent": "another"}'
    answer = await harness.call(found, {"city": "Ulm"})
    first, second = (dict(sent.headers)["Authorization"] for sent in harness.web.asked)
    assert (first.removeprefix("Bearer "), second.removeprefix("Bearer ")) == (TOKEN, "another")
    assert "another" not in str(answer)
    assert made.bound is not None
    kept = harness.box.decrypt(made.sealed) + harness.box.decrypt(made.bound)
    assert TOKEN.encode() not in kept, "no secret is stored with the run, even encrypted"


@pytest.mark.requirement("F2", "A5")
async def test_a_call_whose_secret_was_deleted_or_cannot_be_read_fails_and_sends_nothing(harness: Harness) -> None:
    await harness.register(tool("weather"))
    await harness.secrets.delete(ORG, "WEATHER_TOKEN", an_audit_event(2))
    for unreadable, code in ((), "secret_missing"), (("WEATHER_TOKEN",), "secret_unavailable"):
        harness.secrets.unreadable.update(unreadable)
        with pytest.raises(NativeToolError) as failed:
            await harness.call((await harness.seen("weather")).find("weather"), {"city": "Ulm"})
        assert (failed.value.code, harness.web.asked) == (code, [])


@pytest.mark.requirement("F6", "A5")
@pytest.mark.parametrize("is_swept", [False, True])
async def test_a_component_is_not_called_once_what_is_bound_to_it_has_expired(harness: Harness, is_swept: bool) -> None:
    made = await harness.register(tool("weather"))
    assert made.expires_at == after(3_600)
    if is_swept:
        harness.stored.tools[RUN, "weather"] = replace(made, bound=None)
    found = (await harness.seen("weather")).find("weather")
    harness.clock.advance(3_599)
    if not is_swept:
        await harness.call(found, {"city": "Ulm"})
    harness.clock.advance(1)
    with pytest.raises(NativeToolError) as failed:
        await harness.call(found, {"city": "Ulm"})
    assert (failed.value.code, "has expired" in failed.value.message) == ("wired_tool_expired", True)
    assert len(harness.web.asked) == (0 if is_swept else 1)


@pytest.mark.requirement("F6")
async def test_a_server_has_nothing_bound_to_it_that_could_expire(harness: Harness) -> None:
    await harness.server("files", "read")
    made = await harness.register(node("files", "mcp_server", "tool", server="files"))
    assert (made.bound, made.expires_at) == (None, None)


@pytest.mark.requirement("F2")
async def test_a_component_without_its_credential_is_not_ready() -> None:
    with pytest.raises(NodeFailed) as failed:
        await Harness().register(tool("weather"))
    assert (failed.value.error.code, failed.value.error.retryable) == ("secret_missing", False)


@pytest.mark.requirement("F3")
async def test_an_agent_sees_exactly_the_nodes_that_are_wired_to_it(harness: Harness) -> None:
    await harness.server("files", "read", "write")
    await harness.register(tool("weather"))
    await harness.register(tool("news", "news"))
    await harness.register(node("files", "mcp_server", "tool", server="files", tools=["read"]))
    assert [one.name for one in (await harness.seen("weather", "files")).tools] == ["weather", "mcp__files__read"]
    assert [one.name for one in (await harness.seen("news")).tools] == ["news"]
    nothing = await harness.seen()
    assert (nothing.tools, nothing.denied, nothing.servers) == ((), (), ())


@pytest.mark.requirement("F3")
async def test_an_agent_has_the_native_tools_that_are_wired_to_it_and_none_of_its_own(harness: Harness) -> None:
    made = await harness.register(node("interpreter", "native_tool", "tool", tool="code_execution"))
    await harness.register(node("post", "native_tool", "tool", tool="send_email"))
    await harness.register(tool("weather"))
    assert made.expires_at is None
    both = AgentConfig(name="a", model="m:x", tools=(ToolType.CODE_EXECUTION, ToolType.SEND_EMAIL))
    seen = await harness.seen("interpreter", "weather", config=both)
    assert [one.name for one in seen.tools] == ["code_execution", "weather"]
    assert [one.name for one in (await harness.seen("post")).tools] == ["send_email"]
    assert (await harness.seen(config=both)).tools == ()
    denying = ToolPolicies(rules=(("code_execution", ToolRule(decision=Verdict.DENY)),))
    denied = await harness.seen("interpreter", config=AgentConfig(name="a", model="m:x", tool_policies=denying))
    assert (denied.tools, denied.find_denied("code_execution") is not None) == ((), True)


@pytest.mark.requirement("F3")
async def test_the_agents_policies_and_allowlist_hold_for_what_is_wired(harness: Harness) -> None:
    await harness.register(tool("weather"))
    denying = ToolPolicies(rules=(("weather", ToolRule(decision=Verdict.DENY)),))
    denied = await harness.seen("weather", config=AgentConfig(name="a", model="m:x", tool_policies=denying))
    assert denied.tools == ()
    assert denied.find_denied("weather") is not None
    hidden = await harness.seen("weather", config=AgentConfig(name="a", model="m:x", tool_allowlist=()))
    assert (hidden.tools, hidden.denied) == ((), ())


@pytest.mark.requirement("F3", "F6")
async def test_runs_with_tools_of_one_name_do_not_mix(harness: Harness) -> None:
    await harness.register(tool("weather"))
    await harness.register(tool("weather", url="https://other.example/{{inputs.city}}"), run_id=OTHER_RUN)
    for run_id in (RUN, OTHER_RUN, RUN):
        await harness.call((await harness.seen("weather", run_id=run_id)).find("weather"), {"city": "Ulm"})
    hosts = [call.url.split("/")[2] for call in harness.web.asked]
    assert hosts == ["weather.example", "other.example", "weather.example"]


@pytest.mark.requirement("F2")
async def test_registered_tools_are_read_once_and_missing_ones_looked_for_again(harness: Harness) -> None:
    early = await harness.seen("weather")
    assert (early.tools, early.problems) == ((), ("weather: the tool is not registered",))
    await harness.register(tool("weather"))
    first = await harness.seen("weather")
    assert await harness.seen("weather") is first
    assert harness.stored.reads == 2


@pytest.mark.requirement("F2")
async def test_a_server_of_the_runs_own_brings_its_tools_and_is_closed_with_it(harness: Harness) -> None:
    harness.connections.servers["desk"] = InMemoryMcpServer(tools={"look": InMemoryTool(answer=text_reply("ok"))})
    definition = node("desk", "mcp_server", "tool", server=INLINE)
    made = await harness.register(definition)
    assert b"WEATHER_TOKEN" not in made.sealed
    (look,) = (await harness.seen("desk")).tools
    assert look.name == "mcp__desk__look"
    assert look.mcp is not None
    assert look.mcp.inline is not None
    assert look.mcp.server_id == look.mcp.inline.id == inline_server_id(RUN, "desk")
    assert look.mcp.inline.config.slug == "desk"
    assert await harness.servers.get(ORG, look.mcp.server_id) is None
