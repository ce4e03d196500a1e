"""What a run of one turn tells its tracer."""

from dataclasses import replace

from application.models.ports import ModelReply, ModelRequest, RequestedCall
from application.tracing.ports import GenerationRecord, ToolCallRecord
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.runs.finish_reason import FinishReason
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.runs.usage import Usage
from domain.threads.message import ImageContent, Message, TextContent
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from tests.builders import ORG, RUN, SERVER, a_message, a_run, a_tool, a_tool_call, after, an_agent
from tests.run_builders import some_usage

AGENT = an_agent()


def a_finished_run(run_id: RunId = RUN) -> Run:
    run = a_run(
        run_id, input=(TextContent(text="What is this?"), ImageContent(media_type="image/png", data="A" * 4_000))
    )
    run = replace(run.claimed(at=after(1)), usage=Usage(turns=1, tool_calls=2))
    return run.ended(RunStatus.COMPLETED, at=after(9), output="A picture.")


def a_generation(
    turn: int = 1,
    *,
    run: Run | None = None,
    messages: tuple[Message, ...] | None = None,
    system: str = "You look at pictures.",
    arguments: JsonObject | None = None,
    error_code: str | None = None,
) -> GenerationRecord:
    run = run or a_run()
    request = ModelRequest(
        organization_id=ORG,
        run_id=run.id,
        turn=turn,
        model="openai:small",
        system=system,
        messages=messages or (a_message(1, "What is this?"),),
        tools=(a_tool(),),
    )
    reply = ModelReply(
        model="openai:small-2",
        text="Let me see.",
        calls=(RequestedCall(name="mcp__files__echo", arguments=arguments or {"text": "hi"}),),
        usage=replace(some_usage(100, 20, "0.0015"), cached_tokens=40),
        finish_reason=FinishReason.TOOL_CALLS,
    )
    return GenerationRecord(
        run=run,
        agent=AGENT,
        turn=turn,
        request=request,
        reply=reply if error_code is None else None,
        error_code=error_code,
        started_at=after(2),
        finished_at=after(3.5),
    )


def an_mcp_call(
    *, text: str = "hi back", error_code: str | None = None, params: JsonObject | None = None, index: int = 0
) -> ToolCallRecord:
    result = ToolResult.succeeded(text) if error_code is None else ToolResult.failed(error_code, text)
    call = replace(a_tool_call(index, server_id=SERVER, params=params), result=result)
    return _record(call_tool=a_tool(), call=call)


def a_native_call() -> ToolCallRecord:
    call = a_tool_call(1, name="code_execution", type=ToolType.CODE_EXECUTION, result=ToolResult.succeeded("4"))
    return _record(call_tool=a_tool("code_execution", type=ToolType.CODE_EXECUTION), call=call)


def an_unknown_call() -> ToolCallRecord:
    call = a_tool_call(
        2, name="made_up", type=None, result=ToolResult.failed("tool_not_found", "There is no such tool.")
    )
    return _record(call_tool=None, call=call)


def _record(*, call_tool: Tool | None, call: ToolCall) -> ToolCallRecord:
    result = call.result or ToolResult.succeeded("done")
    settled = call.settled(result, at=after(4.25), duration_ms=250)
    return ToolCallRecord(run=a_run(), call=settled, tool=call_tool)
