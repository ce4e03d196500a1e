"""One checked call, native or MCP, within its deadline: the outcome is always a value."""

import asyncio

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import ConnectionScope
from application.tools.call_context import ToolCallContext
from application.tools.execute_mcp_tool import ExecuteMcpTool
from application.tools.execute_tool import ExecuteTool
from application.tools.ports import NativeTool, NativeToolContext, NativeToolError, NativeToolOutput
from application.tools.result_text import TEXT_LIMIT_BYTES
from domain.errors import ErrorKind, ServiceError
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.threads.message import ImageContent
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolOutcome, ToolResult
from domain.tools.tool import Tool
from tests.builders import ORG, RUN, THREAD, a_tool

CODE = a_tool("code_execution", type=ToolType.CODE_EXECUTION)


def a_context(timeout_s: float = 30.0) -> ToolCallContext:
    scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN)
    return ToolCallContext(tool_call_id=ToolCallId("call_1"), scope=scope, timeout_s=timeout_s)


class Setting:
    """The use case with one native tool and MCP behind it."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.native = mocker.create_autospec(NativeTool, instance=True)
        self.native.run.return_value = NativeToolOutput(value="ok")
        self.mcp = mocker.create_autospec(ExecuteMcpTool, instance=True)
        self.mcp.execute.return_value = ToolResult.succeeded("from afar")
        self.use_case = ExecuteTool(native_tools={ToolType.CODE_EXECUTION: self.native}, execute_mcp_tool=self.mcp)

    async def call(self, tool: Tool = CODE, *, timeout_s: float = 30.0) -> ToolResult:
        return await self.use_case.execute(tool, {"text": "hi"}, a_context(timeout_s))


@pytest.fixture
def setting(mocker: MockerFixture) -> Setting:
    return Setting(mocker)


@pytest.mark.requirement("A4")
async def test_a_native_tool_is_run_with_its_arguments_where_it_belongs(setting: Setting) -> None:
    assert await setting.call() == ToolResult.succeeded("ok")
    context = NativeToolContext(
        organization_id=ORG, thread_id=THREAD, run_id=RUN, tool_call_id=ToolCallId("call_1"), timeout_s=30.0
    )
    setting.native.run.assert_awaited_once_with({"text": "hi"}, context)
    assert setting.mcp.execute.await_count == 0


@pytest.mark.requirement("A4")
async def test_an_mcp_tool_goes_to_its_server_on_behalf_of_the_run(setting: Setting) -> None:
    assert await setting.call(a_tool()) == ToolResult.succeeded("from afar")
    setting.mcp.execute.assert_awaited_once_with(a_tool(), {"text": "hi"}, a_context())
    assert setting.native.run.await_count == 0


@pytest.mark.requirement("A6")
async def test_values_become_text_and_images_are_kept(setting: Setting) -> None:
    image = ImageContent(media_type="image/png", data="aGk=")
    setting.native.run.return_value = NativeToolOutput(value={"a": 1}, images=(image,))
    assert await setting.call() == ToolResult.succeeded('{\n  "a": 1\n}', (image,))


@pytest.mark.requirement("A6", "B11")
@pytest.mark.parametrize("tool", [CODE, a_tool()], ids=["native", "mcp"])
async def test_text_is_cleaned_and_cut_whoever_made_it(setting: Setting, tool: Tool) -> None:
    text = "a\x00b\ud800" + "x" * TEXT_LIMIT_BYTES
    setting.native.run.return_value = NativeToolOutput(value=text)
    setting.mcp.execute.return_value = ToolResult.succeeded(text)
    result = await setting.call(tool)
    assert result.text.startswith("ab?xxx")
    assert "3 of 65539 bytes are missing" in result.text


@pytest.mark.requirement("A5")
async def test_an_expected_failure_comes_in_the_tools_own_words(setting: Setting) -> None:
    setting.native.run.side_effect = NativeToolError("code_failed", "NameError: x")
    assert await setting.call() == ToolResult.failed("code_failed", "NameError: x")


@pytest.mark.requirement("A5")
async def test_an_unexpected_one_as_a_reference(setting: Setting) -> None:
    setting.native.run.side_effect = RuntimeError("token hunter2")
    result = await setting.call()
    assert result.error_code == "tool_unexpected"
    assert result.text == "The tool failed unexpectedly: internal error (reference call_1)"


@pytest.mark.requirement("A5", "E3")
async def test_a_database_that_is_away_is_no_outcome_of_a_call(setting: Setting) -> None:
    setting.native.run.side_effect = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    with pytest.raises(ServiceError, match="Away"):
        await setting.call()


@pytest.mark.requirement("A5", "A7")
async def test_a_tool_that_takes_too_long_is_stopped(setting: Setting) -> None:
    stopped = asyncio.Event()

    async def never(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    setting.native.run.side_effect = never
    result = await setting.call(timeout_s=0.01)
    assert result.error_code == "tool_timeout"
    assert "timed out after 0.01 seconds" in result.text
    assert stopped.is_set()


async def test_a_timeout_inside_the_tool_is_not_taken_for_its_deadline(setting: Setting) -> None:
    setting.native.run.side_effect = TimeoutError("of some socket")
    assert (await setting.call()).error_code == "tool_unexpected"


async def test_a_kind_that_is_not_installed_is_a_fault_of_ours_and_still_a_value(setting: Setting) -> None:
    result = await setting.call(a_tool("internet_search", type=ToolType.INTERNET_SEARCH))
    assert result.outcome is ToolOutcome.FAILED


@pytest.mark.requirement("A12")
async def test_cancelling_is_not_turned_into_a_result(setting: Setting) -> None:
    began = asyncio.Event()

    async def never(_: JsonObject, __: NativeToolContext) -> NativeToolOutput:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    setting.native.run.side_effect = never
    calling = asyncio.create_task(setting.call())
    await began.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
