"""Traces in memory, and their summary for a terminal."""

from dataclasses import replace

import pytest

from application.tracing.ports import ToolCallRecord
from domain.ids import tool_call_id
from domain.runs.run import RunError, RunStatus
from domain.tools.result import ToolResult
from infrastructure.tracing.null import NullTracer
from infrastructure.tracing.recording import RecordingTracer
from tests.builders import RUN, a_run, a_run_id, a_tool_call, after, an_agent
from tests.integration.tracing.records import AGENT, a_finished_run, a_generation, a_native_call, an_mcp_call


@pytest.mark.requirement("G1")
def test_the_summary_is_a_tree_of_the_runs_spans_in_their_order() -> None:
    tracer = RecordingTracer()
    tracer.tool_call(a_native_call())
    tracer.tool_call(an_mcp_call(error_code="mcp_error"))
    tracer.generation(a_generation())
    tracer.run_finished(a_finished_run(), AGENT)

    assert tracer.summary(RUN).splitlines() == [
        "execute_run · completed · scripted:demo.yaml · 0 → 0 tokens · 8000 ms",
        "├─ model_call · openai:small-2 · 100 → 20 tokens · 1500 ms",
        "├─ tool__code_execution · 250 ms",
        "└─ mcp_tool__echo · ERROR mcp_error · 250 ms",
    ]


def test_a_run_that_has_not_ended_has_a_summary_too() -> None:
    tracer = RecordingTracer()
    tracer.generation(a_generation())

    assert tracer.summary(RUN).startswith("execute_run (not finished)\n└─ model_call")
    assert tracer.summary(a_run_id(2)) == "execute_run (not finished)"


def test_a_failed_run_says_why() -> None:
    tracer = RecordingTracer()
    failed = a_run().claimed(at=after(1))
    failed = failed.ended(RunStatus.FAILED, at=after(2), error=RunError(code="model_auth", detail="…"))
    tracer.run_finished(failed, an_agent())

    why = "execute_run · failed · scripted:demo.yaml · 0 → 0 tokens · ERROR model_auth · 1000 ms"
    assert tracer.summary(RUN) == why


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
    tracer.tool_call(ToolCallRecord.of(a_run(), replace(search, settled_at=after(1), duration_ms=5), None))

    [span] = tracer.spans(RUN)
    assert (span.name, span.metadata["tool_type"], span.error) == ("tool__search_tools", "search_tools", None)
    assert (span.started_at, span.finished_at) == (after(0.995), after(1))


@pytest.mark.requirement("G1")
def test_a_run_whose_agent_is_not_known_any_more_is_told_without_its_name() -> None:
    tracer = RecordingTracer()
    tracer.run_finished(a_finished_run(), None)

    [root] = tracer.spans(RUN)
    assert "agent" not in root.trace_metadata


def test_old_runs_make_room() -> None:
    tracer = RecordingTracer(max_runs=2)
    for number in range(5):
        tracer.run_finished(a_finished_run(a_run_id(number)), AGENT)

    assert [bool(tracer.spans(a_run_id(number))) for number in range(5)] == [False, False, False, True, True]


@pytest.mark.requirement("G1")
async def test_without_a_backend_nothing_is_traced_and_no_context_travels() -> None:
    tracer = NullTracer()
    tracer.generation(a_generation())
    tracer.tool_call(an_mcp_call())
    tracer.run_finished(a_finished_run(), AGENT)

    assert tracer.trace_context(a_run(), tool_call_id(RUN, 1, 0)) == {}
    await tracer.close()
