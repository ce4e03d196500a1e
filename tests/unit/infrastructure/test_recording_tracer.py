"""Spans of a run, recorded in memory."""

from dataclasses import replace

import pytest

from application.tracing.ports import ToolCallRecord
from domain.ids import tool_call_id
from domain.tools.result import ToolResult
from infrastructure.tracing.null import NullTracer
from tests.builders import RUN, a_run, a_tool_call, after
from tests.doubles.recording_tracer import RecordingTracer
from tests.integration.tracing.records import AGENT, a_finished_run, a_generation, an_mcp_call


@pytest.mark.requirement("G1")
def test_a_span_told_twice_is_kept_once() -> None:
    tracer = RecordingTracer()
    for _ in range(2):
        tracer.generation(a_generation())
        tracer.tool_call(an_mcp_call())

    assert [span.name for span in tracer.spans(RUN)] == ["model_call", "mcp_tool__echo"]


@pytest.mark.requirement("G1")
def test_a_call_whose_tool_is_not_at_hand_is_told_by_its_servers_name_for_the_tool() -> None:
    tracer = RecordingTracer()
    known, blocked = an_mcp_call(), an_mcp_call(index=1, error_code="approval_denied")
    tracer.tool_call(known)
    tracer.tool_call(replace(blocked, tool=None))

    first, second = tracer.spans(RUN)
    assert first.name == second.name == "mcp_tool__echo"
    assert first.metadata["server"] == second.metadata["server"]
    assert (first.error, second.error) == (None, "approval_denied")


@pytest.mark.requirement("G1")
def test_a_search_for_tools_is_told_as_what_it_is() -> None:
    tracer = RecordingTracer()
    search = a_tool_call(name="search_tools", type=None, result=ToolResult.succeeded("[]"))
    call = replace(search, settled_at=after(1), duration_ms=5)
    tracer.tool_call(ToolCallRecord(run=a_run(), call=call, tool=None))

    [span] = tracer.spans(RUN)
    assert (span.name, span.metadata["tool_type"], span.error) == ("tool__search_tools", "search_tools", None)
    assert (span.started_at, span.finished_at) == (after(0.995), after(1))


@pytest.mark.requirement("G1")
def test_a_run_whose_agent_is_not_known_any_more_is_told_without_its_name() -> None:
    tracer = RecordingTracer()
    tracer.run_finished(a_finished_run(), None)

    [root] = tracer.spans(RUN)
    assert "agent" not in root.trace_metadata


@pytest.mark.requirement("G1")
async def test_without_a_backend_nothing_is_traced_and_no_context_travels() -> None:
    tracer = NullTracer()
    tracer.generation(a_generation())
    tracer.tool_call(an_mcp_call())
    tracer.run_finished(a_finished_run(), AGENT)

    assert tracer.trace_context(a_run(), tool_call_id(RUN, 1, 0)) == {}
    await tracer.close()
