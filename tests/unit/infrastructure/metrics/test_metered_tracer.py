"""What tracing is told of, counted."""

from dataclasses import replace
from decimal import Decimal

import pytest

from domain.runs.usage import ModelUsage
from infrastructure.metrics.instruments import MAX_MODELS, Instruments
from infrastructure.metrics.metered_tracer import MeteredTracer
from tests.builders import RUN
from tests.doubles.recording_tracer import RecordingTracer
from tests.integration.tracing.records import AGENT, a_finished_run, a_generation, a_native_call, an_mcp_call
from tests.metering import sample


@pytest.mark.requirement("G1", "G2")
def test_a_run_is_counted_with_its_model_calls_tool_calls_tokens_and_cost_and_goes_on_to_tracing() -> None:
    instruments, inner = Instruments(version="1"), RecordingTracer()
    tracer = MeteredTracer(inner, instruments=instruments)
    generation = replace(a_generation(), run=a_finished_run())
    assert generation.reply is not None
    usage = ModelUsage(input_tokens=100, output_tokens=20, cached_tokens=60, cost_usd=Decimal("0.25"))
    tracer.generation(replace(generation, reply=replace(generation.reply, usage=usage)))
    tracer.tool_call(a_native_call())
    tracer.tool_call(an_mcp_call(error_code="mcp_error"))
    tracer.run_finished(a_finished_run(), AGENT)

    model = generation.reply.model
    assert sample(instruments, "dragoman_model_call_seconds_sum", model=model, outcome="ok") == 1.5
    assert sample(instruments, "dragoman_tokens_total", model=model, kind="input") == 100
    assert sample(instruments, "dragoman_tokens_total", model=model, kind="cached") == 60
    assert sample(instruments, "dragoman_cost_usd_total", model=model) == 0.25
    assert sample(instruments, "dragoman_tool_call_seconds_sum", type="code_execution", outcome="ok") == 0.25
    assert sample(instruments, "dragoman_tool_call_seconds_count", type="mcp_tool", outcome="error") == 1
    assert sample(instruments, "dragoman_runs_ended_total", status="completed") == 1
    assert sample(instruments, "dragoman_turn_seconds_count") == 1
    assert len(inner.spans(RUN)) == 4


@pytest.mark.requirement("G2")
def test_a_turn_lasts_until_the_next_one_but_not_over_a_wait_for_people() -> None:
    instruments = Instruments(version="1")
    tracer = MeteredTracer(RecordingTracer(), instruments=instruments)
    first = a_generation()
    taken_up_anew = replace(first, run=replace(first.run, attempt=first.run.attempt + 1))
    tracer.generation(first)
    tracer.generation(first)
    assert sample(instruments, "dragoman_turn_seconds_count") == 1
    tracer.generation(taken_up_anew)
    assert sample(instruments, "dragoman_turn_seconds_count") == 1


@pytest.mark.requirement("G2")
def test_models_beyond_the_hundredth_are_counted_together() -> None:
    instruments = Instruments(version="1")
    labels = [instruments.model_label(f"openai:m{number}") for number in range(MAX_MODELS + 2)]
    assert labels[-2:] == ["other", "other"]
    assert instruments.model_label("openai:m0") == "openai:m0"
    assert len(set(labels)) == MAX_MODELS + 1
