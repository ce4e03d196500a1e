"""Langfuse traces as they arrive over the real wire."""

import itertools
import json
from dataclasses import replace

import langfuse
import pytest

from application.tracing.ports import Tracer
from domain.ids import OrganizationId, RunId, tool_call_id
from domain.threads.message import ImageContent, Message
from infrastructure.tracing.sending import SendingTracer
from tests.builders import AGENT as AGENT_ID
from tests.builders import ORG, RUN, SERVER, START, THREAD, a_message, a_run, after
from tests.integration.tracing.langfuse_tracers import SECRET, langfuse_tracer, traced
from tests.integration.tracing.receivers import (
    refusing_address,
)
from tests.integration.tracing.records import (
    AGENT,
    a_finished_run,
    a_generation,
    a_native_call,
    an_mcp_call,
    an_unknown_call,
)

OTHER_ORG = OrganizationId("org_other")


_numbers = itertools.count(1)


def whole_run(tracer: Tracer) -> None:
    tracer.generation(a_generation())
    tracer.tool_call(an_mcp_call())
    tracer.tool_call(a_native_call())
    tracer.tool_call(an_unknown_call())
    tracer.run_finished(a_finished_run(), AGENT)


def nanoseconds(seconds_after_start: float) -> int:
    return round(after(seconds_after_start).timestamp() * 1000) * 1_000_000


@pytest.mark.requirement("G1")
async def test_a_run_is_one_trace_with_a_span_for_each_model_and_tool_call() -> None:
    spans = await traced(whole_run, 5)

    assert [span.name for span in spans] == [
        *("model_call", "mcp_tool__echo", "tool__code_execution", "tool__unknown", "execute_run")
    ]
    kinds = [span.attributes["langfuse.observation.type"] for span in spans]
    assert kinds == ["generation", "tool", "tool", "tool", "agent"]
    root = spans[-1]
    assert root.parent_id == ""
    assert all(span.parent_id == root.span_id for span in spans[:-1])
    assert {span.trace_id for span in spans} == {langfuse.Langfuse.create_trace_id(seed=RUN)}
    assert len({span.span_id for span in spans}) == 5
    assert all(span.scope == "langfuse-sdk" for span in spans)
    assert all(span.resource["service.name"] == "dragoman" for span in spans)


@pytest.mark.requirement("G1")
async def test_every_span_carries_the_session_and_what_the_run_was() -> None:
    spans = await traced(whole_run, 5)

    for span in spans:
        assert span.attributes["session.id"] == THREAD
        assert span.attributes["langfuse.trace.name"] == "execute_run"
        assert json.loads(span.attributes["langfuse.trace.metadata.run_id"]) == RUN
        assert json.loads(span.attributes["langfuse.trace.metadata.organization_id"]) == ORG
        assert json.loads(span.attributes["langfuse.trace.metadata.agent_id"]) == AGENT_ID
    assert json.loads(spans[-1].attributes["langfuse.trace.metadata.agent"]) == AGENT.config.name


@pytest.mark.requirement("G1")
async def test_the_run_has_its_input_output_and_times() -> None:
    (root,) = await traced(lambda tracer: tracer.run_finished(a_finished_run(), AGENT))

    assert json.loads(root.attributes["langfuse.observation.input"]) == [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "media_type": "image/png", "bytes": 3_000},
    ]
    assert root.attributes["langfuse.observation.output"] == "A picture."
    assert json.loads(root.attributes["langfuse.observation.metadata.status"]) == "completed"
    assert (root.start_ns, root.end_ns) == (nanoseconds(1), nanoseconds(9))
    assert not root.is_error


@pytest.mark.requirement("G1", "A10")
async def test_a_generation_has_model_prompt_reply_usage_and_cost() -> None:
    (span,) = await traced(lambda tracer: tracer.generation(a_generation()))

    attributes = span.attributes
    assert attributes["langfuse.observation.model.name"] == "openai:small-2"
    assert json.loads(attributes["langfuse.observation.input"]) == [
        {"role": "system", "content": "You look at pictures."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}]},
    ]
    assert json.loads(attributes["langfuse.observation.output"]) == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "name": "mcp__files__echo", "params": {"text": "hi"}},
        ],
    }
    assert json.loads(attributes["langfuse.observation.usage_details"]) == {
        "input": 60,
        "input_cached_tokens": 40,
        "output": 20,
        "total": 120,
    }
    assert json.loads(attributes["langfuse.observation.cost_details"]) == {"total": 0.0015}
    assert (span.start_ns, span.end_ns) == (nanoseconds(2), nanoseconds(3.5))


@pytest.mark.requirement("G1", "A11")
async def test_a_failed_model_call_is_an_error_with_its_code() -> None:
    (span,) = await traced(lambda tracer: tracer.generation(a_generation(error_code="model_timeout")))

    assert span.is_error
    assert span.attributes["langfuse.observation.level"] == "ERROR"
    assert span.attributes["langfuse.observation.status_message"] == "model_timeout"
    assert "langfuse.observation.output" not in span.attributes


@pytest.mark.requirement("G1")
async def test_an_mcp_call_is_named_after_the_servers_own_tool_and_says_whose_it_was() -> None:
    (span,) = await traced(lambda tracer: tracer.tool_call(an_mcp_call()))

    attributes = span.attributes
    metadata = {
        name: json.loads(attributes[f"langfuse.observation.metadata.{name}"])
        for name in ("tool_name", "server_id", "tool_type", "is_error")
    }
    assert span.name == "mcp_tool__echo"
    assert metadata == {
        "tool_name": "mcp__files__echo",
        "server_id": SERVER,
        "tool_type": "mcp_tool",
        "is_error": False,
    }
    assert json.loads(attributes["langfuse.observation.input"]) == {"text": "hi"}
    assert attributes["langfuse.observation.output"] == "hi back"
    assert "langfuse.observation.level" not in attributes
    assert (span.start_ns, span.end_ns) == (nanoseconds(4), nanoseconds(4.25))


@pytest.mark.requirement("G1", "A5")
async def test_a_failed_tool_call_is_flagged_as_an_error_with_its_code() -> None:
    (span,) = await traced(lambda tracer: tracer.tool_call(an_mcp_call(text="no such file", error_code="mcp_error")))

    assert span.is_error
    assert span.attributes["langfuse.observation.level"] == "ERROR"
    assert span.attributes["langfuse.observation.status_message"] == "mcp_error"
    assert span.attributes["langfuse.observation.output"] == "no such file"
    assert span.attributes["langfuse.observation.metadata.is_error"] == "true"


@pytest.mark.requirement("G1", "E4")
async def test_a_resumed_run_goes_on_with_its_trace_and_repeats_nothing_under_other_ids() -> None:
    before = await traced(whole_run, 5)
    after_a_restart = await traced(whole_run, 5)
    (next_turn,) = await traced(lambda tracer: tracer.generation(a_generation(turn=2)))

    assert [(span.trace_id, span.span_id) for span in after_a_restart] == [
        (span.trace_id, span.span_id) for span in before
    ]
    assert next_turn.trace_id == before[0].trace_id
    assert next_turn.span_id not in {span.span_id for span in before}


@pytest.mark.requirement("G1")
async def test_the_trace_context_of_a_call_is_its_span_in_w3c_form() -> None:
    (span,) = await traced(lambda tracer: tracer.tool_call(an_mcp_call()))
    with refusing_address() as url:
        async with langfuse_tracer(url) as tracer:
            context = tracer.trace_context(a_run(), tool_call_id(RUN, 1, 0))

    assert context == {"traceparent": f"00-{span.trace_id}-{span.span_id}-01"}


@pytest.mark.requirement("G1")
async def test_runs_of_two_organizations_are_two_traces_of_one_project_each_with_its_organization() -> None:
    theirs = replace(a_run(RunId("run_other")), organization_id=OTHER_ORG)

    def tell(tracer: SendingTracer) -> None:
        tracer.generation(a_generation())
        tracer.generation(a_generation(run=theirs))

    first, second = await traced(tell, 2)

    assert first.trace_id != second.trace_id
    assert json.loads(first.attributes["langfuse.trace.metadata.organization_id"]) == ORG
    assert json.loads(second.attributes["langfuse.trace.metadata.organization_id"]) == OTHER_ORG


@pytest.mark.requirement("G1")
async def test_content_can_be_kept_out() -> None:
    spans = await traced(whole_run, 5, content=False)

    everything = json.dumps([span.attributes for span in spans])
    assert "langfuse.observation.input" not in everything
    assert "langfuse.observation.output" not in everything
    for said in ("What is this?", "You look", "Let me see", "A picture", "hi back", "no such tool"):
        assert said not in everything
    assert json.loads(spans[0].attributes["langfuse.observation.usage_details"])["output"] == 20


@pytest.mark.requirement("G1", "B12")
async def test_planted_secrets_reach_no_trace() -> None:
    def tell(tracer: SendingTracer) -> None:
        tracer.generation(
            a_generation(
                system=f"The key is {SECRET}.",
                messages=(a_message(1, f"Use {SECRET}"),),
                arguments={"text": SECRET, "api_key": "unregistered"},
            )
        )
        tracer.tool_call(an_mcp_call(text=f"logged in with {SECRET}", params={"url": f"https://h/?k={SECRET}"}))
        tracer.tool_call(an_mcp_call(index=1, params={"headers": {"Authorization": "unregistered"}}))

    spans = await traced(tell, 3)

    everything = json.dumps([span.attributes for span in spans])
    assert SECRET not in everything
    assert "unregistered" not in everything
    assert "logged in with [redacted]" in everything


async def test_of_a_long_transcript_the_newest_messages_are_shown() -> None:
    messages = tuple(a_message(number, f"<{number}>" + "x" * 30_000) for number in range(1, 101))

    (span,) = await traced(lambda tracer: tracer.generation(a_generation(messages=messages)))

    system, left_out, *shown = json.loads(span.attributes["langfuse.observation.input"])
    assert system["role"] == "system"
    assert left_out == {"messages_left_out": 100 - len(shown)}
    newest = range(101 - len(shown), 101)
    assert all(
        message["content"][0]["text"].startswith(f"<{number}>") for number, message in zip(newest, shown, strict=True)
    )
    assert sum(map(len, span.attributes.values())) < 300_000


async def test_images_are_told_by_kind_and_size_and_a_huge_result_is_cut() -> None:
    image = Message(
        id=a_message(1).id,
        thread_id=THREAD,
        run_id=None,
        role=a_message(1).role,
        content=(ImageContent(media_type="image/png", data="A" * 400_000),),
        created_at=START,
    )

    def tell(tracer: SendingTracer) -> None:
        tracer.generation(a_generation(messages=(image,)))
        tracer.tool_call(an_mcp_call(text="y" * 1_000_000))

    generation, call = await traced(tell, 2)

    assert '"bytes": 300000' in generation.attributes["langfuse.observation.input"]
    assert "AAAA" not in generation.attributes["langfuse.observation.input"]
    assert len(call.attributes["langfuse.observation.output"]) < 270_000
    assert "characters more" in call.attributes["langfuse.observation.output"]


async def test_text_that_is_not_valid_unicode_is_told_as_far_as_it_can_be() -> None:
    def tell(tracer: SendingTracer) -> None:
        tracer.tool_call(an_mcp_call(text="half a pair: \ud800", params={"\ud800": "\udfff"}))
        tracer.tool_call(an_mcp_call(index=1))

    odd, plain = await traced(tell, 2)

    assert odd.attributes["langfuse.observation.output"] == "half a pair: ?"
    assert plain.attributes["langfuse.observation.output"] == "hi back"
