"""Traces of workflow runs: one for the whole, a span for each node, and the runs of agents below
theirs."""

from dataclasses import replace

import pytest

from application.workflows.node_execution import NodeFailed
from domain.tools.wired import WiredNodes
from infrastructure.tracing import span_ids
from infrastructure.tracing.observations import ObservationKind, run_observation
from tests.builders import RUN as AGENT_RUN
from tests.builders import a_run, a_tool_call
from tests.doubles.recording_tracer import RecordingTracer
from tests.unit.application.workflows.workflow_harness import RUN, WorkflowHarness
from tests.workflow_builders import agent, entrypoint, node, transform


def a_harness() -> WorkflowHarness:
    return WorkflowHarness(
        entrypoint(),
        agent("poet"),
        node("may", "condition", expression="`true`"),
        transform("page", "'page'"),
        transform("bin", "'bin'"),
        *("start -> poet", "poet -> may", "may.true -> page", "may.false -> bin"),
    )


@pytest.mark.requirement("G1", "F4")
async def test_an_ended_workflow_run_is_a_trace_with_a_span_for_each_executed_node() -> None:
    harness = a_harness()
    await harness.start({"topic": "Ulm"})
    run = await harness.advance()
    whole, *nodes = harness.tracer.spans(RUN)
    assert (whole.kind, whole.name, whole.parent_id) == (ObservationKind.CHAIN, "execute_workflow", None)
    assert (whole.input, whole.output, whole.error) == (run.input, run.output, None)
    assert whole.trace_metadata["workflow_run_id"] == RUN
    assert {span.name for span in nodes} == {f"workflow_node__{name}" for name in ("start", "poet", "may", "page")}
    assert {span.parent_id for span in nodes} == {whole.span_id}
    assert {span.trace_id for span in (whole, *nodes)} == {span_ids.trace_id(RUN)}
    poet = next(span for span in nodes if span.name == "workflow_node__poet")
    assert (poet.metadata["run_id"], poet.metadata["node_kind"], poet.output) == ("run_poet", "agent", "poet!")


async def test_a_failure_is_told_of_the_whole_and_of_its_node() -> None:
    harness = a_harness()
    harness.told.outcomes["poet"] = [NodeFailed("model_failed", "It failed.")]
    await harness.start()
    await harness.advance()
    whole, *nodes = harness.tracer.spans(RUN)
    assert (whole.error, whole.metadata["failed_node"]) == ("model_failed", "poet")
    assert {span.name: span.error for span in nodes} == {
        "workflow_node__start": None,
        "workflow_node__poet": "model_failed",
    }


async def test_a_run_that_is_not_over_has_told_nothing() -> None:
    harness = WorkflowHarness(entrypoint(), node("ask", "human_input", prompt="?"), "start -> ask")
    await harness.start()
    await harness.advance()
    assert harness.tracer.spans(RUN) == ()


@pytest.mark.requirement("G1")
async def test_an_agents_run_stands_below_its_node_in_the_trace_of_the_workflow_run() -> None:
    wired = WiredNodes(workflow_run_id=RUN, node_ids=())
    run = replace(a_run(metadata={"workflow_run_id": RUN, "node_id": "poet"}), wired=wired)
    told = run_observation(run, None)
    assert (told.trace_id, told.parent_id) == (span_ids.trace_id(RUN), span_ids.node_span_id(RUN, "poet"))
    assert (told.span_id, told.session_id, told.trace_name) == (span_ids.run_span_id(run.id), RUN, "execute_workflow")
    context = RecordingTracer().trace_context(run, a_tool_call().id)["traceparent"]
    assert context.split("-")[1] == f"{span_ids.trace_id(RUN):032x}"


@pytest.mark.parametrize("metadata", [{}, {"workflow_run_id": RUN, "node_id": "poet"}])
async def test_any_other_run_is_a_trace_of_its_own_whatever_it_says_of_itself(metadata: dict[str, str]) -> None:
    told = run_observation(a_run(metadata={**metadata}), None)
    assert (told.trace_id, told.parent_id) == (span_ids.trace_id(AGENT_RUN), None)
    assert told.trace_name == "execute_run"
