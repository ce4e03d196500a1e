"""One call of an MCP tool: from the tool's binding to a result, whatever goes wrong on the way."""

import asyncio
import logging
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import OrganizationStore
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import (
    ConnectionScope,
    ContentBlock,
    ContentKind,
    McpCall,
    McpCatalogStore,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpReply,
    McpServerStore,
)
from application.system.turns import Turn
from application.tools.call_context import ToolCallContext
from application.tools.execute_mcp_tool import ExecuteMcpTool
from domain.errors import ErrorKind, ServiceError
from domain.identity.organization import Organization
from domain.ids import GatewaySessionId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.behavior import OutputValidation
from domain.mcp.catalog import McpCatalog, Rejection
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from domain.threads.message import ImageContent
from domain.tools.result import ToolOutcome, ToolResult
from domain.tools.tool import McpBinding, Tool
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG, RUN, SERVER, START, THREAD, a_catalog, a_definition, a_server, a_tool, an_organization
from tests.doubles.mcp_connections import text_reply
from tests.mcp_builders import ACCOUNTS

SCOPE = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN)
NUMBER: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


ECHO = a_definition("echo")


class Setting:
    """The use case over a store and connections that do as they are told."""

    def __init__(self, mocker: MockerFixture, *, mcp_enabled: bool = True, slow_ms: int = 60_000) -> None:
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.servers.get.return_value = a_server()
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.connections.call_tool.return_value = text_reply("the answer")
        self.catalogs: MockType = mocker.create_autospec(McpCatalogStore, instance=True)
        self.catalogs.load.return_value = a_catalog(tools=(ECHO,))
        self.catalog_updater: MockType = mocker.create_autospec(CatalogUpdater, instance=True)
        self.organizations: MockType = mocker.create_autospec(OrganizationStore, instance=True)
        self.organizations.get.return_value = an_organization()
        self.use_case = ExecuteMcpTool(
            servers=self.servers,
            catalogs=self.catalogs,
            catalog_updater=self.catalog_updater,
            connections=self.connections,
            schemas=JsonSchemaValidator(),
            switch=McpSwitch(enabled=mcp_enabled, organizations=self.organizations),
            accounts=ACCOUNTS,
            slow_ms=slow_ms,
        )

    def configure(self, **changes: object) -> McpServer:
        server = a_server()
        server = replace(server, config=replace(server.config, **changes))  # type: ignore[arg-type]  # fields by name
        self.servers.get.return_value = server
        return server

    async def call(
        self, tool: Tool | None = None, *, timeout_s: float = 30.0, scope: ConnectionScope = SCOPE
    ) -> ToolResult:
        return await self.use_case.execute(
            tool or a_tool(),
            {"text": "hi"},
            ToolCallContext(
                tool_call_id=ToolCallId("call_1"), scope=scope, timeout_s=timeout_s, meta={"traceparent": "00-1"}
            ),
        )


@pytest.fixture
def setting(mocker: MockerFixture) -> Setting:
    return Setting(mocker)


def with_output(schema: JsonObject, **binding: object) -> Tool:
    bound = McpBinding(server_id=SERVER, server_slug="files", tool_name="echo", output_schema=schema)
    return a_tool(mcp=replace(bound, **binding))  # type: ignore[arg-type]  # fields by name


def pinned_to_echo() -> Tool:
    """The tool of a run that was given ECHO."""
    binding = McpBinding(server_id=SERVER, server_slug="files", tool_name="echo", definition=ECHO)
    return a_tool(mcp=binding)


@pytest.mark.requirement("A5", "E3")
async def test_a_database_that_is_away_is_no_outcome_of_a_call(setting: Setting) -> None:
    setting.servers.get.side_effect = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    with pytest.raises(ServiceError, match="Away"):
        await setting.call()
    assert setting.connections.call_tool.await_count == 0


@pytest.mark.requirement("B13")
async def test_a_tool_that_is_what_the_run_was_given_is_called_and_held_to_it(setting: Setting) -> None:
    assert await setting.call(pinned_to_echo()) == ToolResult.succeeded("the answer")
    setting.catalogs.load.assert_awaited_once_with(ORG, SERVER)
    assert setting.connections.call_tool.await_args.args[2].definition is ECHO


OTHER = a_definition("echo", description="Says it to everyone.")
WAITING = replace(a_catalog(tools=(ECHO,)), quarantined={"echo": None})
REJECTED = replace(WAITING, rejected={"echo": Rejection(by="usr_ada", at=START)})


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("stored", "outcome", "code"),
    [
        pytest.param(
            replace(a_catalog(tools=(OTHER,)), quarantined={"echo": ECHO}),
            "blocked",
            "mcp_tool_quarantined",
            id="changed",
        ),
        pytest.param(WAITING, "blocked", "mcp_tool_quarantined", id="never approved"),
        pytest.param(REJECTED, "blocked", "mcp_tool_quarantined", id="rejected"),
        pytest.param(a_catalog(tools=(OTHER,)), "blocked", "mcp_tool_changed", id="approved anew"),
        pytest.param(a_catalog(tools=()), "failed", "mcp_tool_unknown", id="gone"),
        pytest.param(None, "failed", "mcp_tool_unknown", id="never listed"),
    ],
)
async def test_a_tool_that_is_not_what_the_run_was_given_any_more_is_not_called(
    setting: Setting, stored: McpCatalog | None, outcome: str, code: str
) -> None:
    setting.catalogs.load.return_value = stored
    result = await setting.call(pinned_to_echo())
    assert (result.outcome.value, result.error_code) == (outcome, code)
    assert "mcp__files__echo" in result.text
    setting.connections.call_tool.assert_not_awaited()


@pytest.mark.requirement("B13")
@pytest.mark.parametrize("listing", [None, McpFailure(McpFailureKind.TIMEOUT, "late")])
async def test_a_change_that_only_the_call_finds_is_refused_and_listed(
    setting: Setting, listing: McpFailure | None
) -> None:
    setting.connections.call_tool.side_effect = McpFailure(McpFailureKind.DEFINITION_CHANGED, "changed")
    setting.catalog_updater.relist.side_effect = listing
    result = await setting.call(pinned_to_echo())
    assert (result.outcome, result.error_code) == (ToolOutcome.BLOCKED, "mcp_tool_changed")
    assert setting.catalog_updater.relist.await_args.args == (a_server(), SCOPE)


@pytest.mark.requirement("A4", "A5")
async def test_success_returns_the_servers_answer(setting: Setting) -> None:
    assert await setting.call() == ToolResult.succeeded("the answer")


@pytest.mark.requirement("A4")
async def test_the_server_and_its_own_tool_name_come_from_the_binding(setting: Setting) -> None:
    await setting.call()
    setting.servers.get.assert_awaited_once_with(ORG, SERVER)
    server, scope, call, on_progress = setting.connections.call_tool.await_args.args
    assert (server, scope, on_progress) == (a_server(), SCOPE, None)
    assert call == McpCall(tool_name="echo", arguments={"text": "hi"}, timeout_s=30.0, meta={"traceparent": "00-1"})


@pytest.mark.requirement("A5")
async def test_a_tool_without_a_binding_is_a_configuration_error_and_asks_nobody(setting: Setting) -> None:
    result = await setting.call(replace(a_tool(), mcp=None))
    assert result.text == "MCP tool configuration error: missing integration ID"
    assert setting.servers.get.await_count == setting.connections.call_tool.await_count == 0


@pytest.mark.requirement("A5")
async def test_an_error_of_the_tool_is_a_value_for_the_model(setting: Setting) -> None:
    setting.connections.call_tool.return_value = text_reply("disk full", is_error=True)
    result = await setting.call()
    assert (result.outcome, result.text) == (ToolOutcome.FAILED, "MCP tool execution failed: disk full")


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("kind", [kind for kind in McpFailureKind if kind is not McpFailureKind.DEFINITION_CHANGED])
async def test_every_failure_of_a_call_is_a_value_for_the_model(setting: Setting, kind: McpFailureKind) -> None:
    setting.connections.call_tool.side_effect = McpFailure(kind, "detail", rpc_code=-1, stderr="token hunter2")
    result = await setting.call()
    assert result.outcome is ToolOutcome.FAILED
    assert result.text.startswith("MCP tool execution failed: ")
    assert "hunter2" not in result.text


@pytest.mark.requirement("A5", "A7")
async def test_a_timeout_says_how_long_was_waited(setting: Setting) -> None:
    setting.connections.call_tool.side_effect = McpFailure(McpFailureKind.TIMEOUT, "no answer")
    result = await setting.call(with_output({}, output_schema=None, timeout_s=2.5))
    assert "timed out after 2.5 seconds" in result.text
    assert setting.connections.call_tool.await_args.args[2].timeout_s == 2.5


@pytest.mark.requirement("A5")
async def test_an_unexpected_error_is_told_without_its_text(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    setting.connections.call_tool.side_effect = ValueError("token hunter2")
    result = await setting.call()
    assert result.text == "MCP tool execution failed unexpectedly: internal error (reference call_1)"
    assert any(record.exc_info for record in caplog.records), "the operator finds the trace under the reference"


@pytest.mark.requirement("B14")
async def test_with_mcp_switched_off_nothing_is_called(mocker: MockerFixture) -> None:
    setting = Setting(mocker, mcp_enabled=False)
    assert "MCP disabled" in (await setting.call()).text
    assert setting.connections.call_tool.await_count == 0


@pytest.mark.requirement("B14")
@pytest.mark.parametrize("organization", [None, replace(an_organization(), mcp_enabled=False)])
async def test_with_mcp_switched_off_by_the_organization_nothing_is_called_from_then_on(
    setting: Setting, organization: Organization | None
) -> None:
    assert not (await setting.call()).is_error
    setting.organizations.get.return_value = organization
    assert "MCP disabled" in (await setting.call()).text
    assert setting.connections.call_tool.await_count == 1
    setting.organizations.get.assert_awaited_with(ORG)


@pytest.mark.requirement("B14")
async def test_a_server_that_is_not_installed_is_not_called(setting: Setting) -> None:
    config = McpServerConfig(slug="files", kind=McpServerKind.PYTHON, package="files")
    setting.servers.get.return_value = a_server(config=config)
    result = await setting.call()
    assert (result.error_code, setting.connections.call_tool.await_count) == ("mcp_not_installed", 0)
    assert result.text.startswith("MCP tool execution failed: MCP server not installed.")


@pytest.mark.requirement("B6")
async def test_a_server_that_was_removed_makes_its_tools_unknown(setting: Setting) -> None:
    setting.servers.get.return_value = None
    result = await setting.call()
    assert (result.error_code, setting.connections.call_tool.await_count) == ("mcp_tool_unknown", 0)
    assert "Unknown tool" in result.text


async def test_a_disabled_server_is_not_connected(setting: Setting) -> None:
    setting.configure(enabled=False)
    result = await setting.call()
    assert (result.error_code, setting.connections.call_tool.await_count) == ("mcp_not_connected", 0)


@pytest.mark.requirement("A6")
async def test_images_come_with_the_text(setting: Setting) -> None:
    image = ImageContent(media_type="image/png", data="aGk=")
    block = ContentBlock(kind=ContentKind.IMAGE, text="image/png, 2 bytes", image=image)
    setting.connections.call_tool.return_value = McpReply(is_error=False, content=(block,))
    assert await setting.call() == ToolResult.succeeded("", (image,))


@pytest.mark.requirement("B9")
@pytest.mark.parametrize(("structured", "fits"), [({"n": 1}, True), ({"n": "one"}, False), ({}, False), (None, False)])
@pytest.mark.parametrize("mode", list(OutputValidation))
async def test_structured_content_is_held_against_the_schema_as_the_servers_mode_says(
    setting: Setting, structured: JsonValue, fits: bool, mode: OutputValidation, caplog: pytest.LogCaptureFixture
) -> None:
    setting.configure(output_validation=mode)
    setting.connections.call_tool.return_value = text_reply("text", structured=structured)
    with caplog.at_level(logging.WARNING):
        result = await setting.call(with_output(NUMBER))
    refused = not fits and mode is OutputValidation.ENFORCE
    assert (result.error_code == "mcp_output_invalid") is refused
    warned = any(record.msg == "MCP result does not fit the output schema" for record in caplog.records)
    assert warned is (not fits and mode is OutputValidation.WARN)


@pytest.mark.requirement("A5")
async def test_others_run_between_the_check_of_a_large_result_and_its_conversion(
    setting: Setting, mocker: MockerFixture
) -> None:
    setting.configure(output_validation=OutputValidation.WARN)
    setting.connections.call_tool.return_value = text_reply("text", structured={"n": 1})
    rest = mocker.patch.object(Turn, "rest", new=mocker.AsyncMock())
    assert not (await setting.call(with_output(NUMBER))).is_error
    assert rest.await_count == 2


@pytest.mark.requirement("C4", "G2")
async def test_what_servers_say_stands_in_no_log(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    setting.configure(output_validation=OutputValidation.WARN)
    setting.connections.call_tool.return_value = text_reply("text", structured={"n": "told-in-confidence"})
    with caplog.at_level(logging.DEBUG):
        assert not (await setting.call(with_output(NUMBER))).is_error
        setting.connections.call_tool.side_effect = McpFailure(
            McpFailureKind.SERVER_ERROR, "told-in-confidence", rpc_code=-32000
        )
        assert (await setting.call()).error_code == "mcp_server_error"
    assert len([record for record in caplog.records if record.msg != "MCP tool call started"]) == 3
    assert "told-in-confidence" not in str([vars(record) for record in caplog.records])


@pytest.mark.requirement("B9")
async def test_a_schema_that_cannot_be_used_is_the_servers_fault_and_not_ours(setting: Setting) -> None:
    setting.configure(output_validation=OutputValidation.ENFORCE)
    setting.connections.call_tool.return_value = text_reply("text", structured={"n": 1})
    result = await setting.call(with_output({"type": "nonsense"}))
    assert result.error_code == "mcp_output_invalid"


async def test_an_error_of_the_tool_is_not_held_against_the_schema(setting: Setting) -> None:
    setting.configure(output_validation=OutputValidation.ENFORCE)
    setting.connections.call_tool.return_value = text_reply("disk full", is_error=True)
    assert (await setting.call(with_output(NUMBER))).error_code == "mcp_tool_error"


LATE = McpFailure(McpFailureKind.TIMEOUT, "late")


@pytest.mark.requirement("A5", "G2")
@pytest.mark.parametrize(
    ("failure", "slow", "outcome"),
    [
        pytest.param(None, (60_000, None), ("succeeded", logging.DEBUG), id="usual"),
        pytest.param(None, (0, None), ("succeeded", logging.INFO), id="slow"),
        pytest.param(None, (0, GatewaySessionId("gws_1")), ("succeeded", logging.DEBUG), id="slow through the gateway"),
        pytest.param(LATE, (60_000, None), ("failed", logging.WARNING), id="failed"),
    ],
)
async def test_one_log_line_names_tool_server_and_outcome(
    mocker: MockerFixture,
    caplog: pytest.LogCaptureFixture,
    failure: McpFailure | None,
    slow: tuple[int, GatewaySessionId | None],
    outcome: tuple[str, int],
) -> None:
    slow_ms, session = slow
    setting = Setting(mocker, slow_ms=slow_ms)
    setting.connections.call_tool.side_effect = failure
    with caplog.at_level(logging.DEBUG):
        await setting.call(scope=replace(SCOPE, gateway_session_id=session))
    began, record = [record for record in caplog.records if record.name == "application.tools.execute_mcp_tool"]
    assert (began.msg, began.levelno) == ("MCP tool call started", logging.DEBUG)
    fields = record.__dict__
    assert {name: began.__dict__[name] for name in ("tool", "server_id")} == {
        name: fields[name] for name in ("tool", "server_id")
    }
    assert (fields["status"], record.levelno) == outcome
    assert (fields["tool"], fields["server_id"], fields["tool_call_id"]) == ("mcp__files__echo", SERVER, "call_1")
    assert (fields["organization_id"], fields["thread_id"], fields["run_id"]) == (ORG, THREAD, RUN)
    assert fields["duration_ms"] >= 0


@pytest.mark.requirement("G2")
async def test_a_call_that_hangs_is_in_the_log_before_it_ends(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    setting, reported = Setting(mocker, slow_ms=0), asyncio.Event()

    def report(record: logging.LogRecord) -> bool:
        reported.set()
        return True

    async def answer(*_: object) -> McpReply:
        await reported.wait()
        return text_reply("at last")

    setting.connections.call_tool.side_effect = answer
    caplog.handler.addFilter(report)
    with caplog.at_level(logging.INFO):
        async with asyncio.timeout(60):
            assert (await setting.call()).text == "at last"
    caplog.handler.removeFilter(report)
    unanswered, called = caplog.records
    assert (unanswered.levelno, unanswered.__dict__["tool"]) == (logging.INFO, "mcp__files__echo")
    assert (unanswered.__dict__["run_id"], unanswered.__dict__["timeout_s"]) == (RUN, 30.0)
    assert called.msg == "MCP tool called"


@pytest.mark.requirement("G2")
async def test_a_call_that_is_answered_in_time_is_not_reported_afterwards(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await Setting(mocker, slow_ms=0).call(scope=replace(SCOPE, gateway_session_id=GatewaySessionId("gws_1")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert caplog.records == []
