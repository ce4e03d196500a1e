"""Spans as a collector receives them over the real wire, by the conventions for generative AI."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from domain.runs.provider_error import ProviderError
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.all_tracers import AllTracers
from infrastructure.tracing.observation_sender import ObservationSender
from infrastructure.tracing.otel_sink import OtelSink
from infrastructure.tracing.sending import SendingTracer
from tests.integration.tracing.langfuse_tracers import a_langfuse_tracer
from tests.integration.tracing.receivers import ReceivedSpan, black_hole, langfuse_receiver
from tests.integration.tracing.records import AGENT, a_finished_run, a_generation, a_native_call, an_mcp_call

SECRET = "hunter22-hunter22"
CLIENT, INTERNAL = 3, 1


def otel(url: str, *, content: bool = True) -> SendingTracer:
    return SendingTracer(
        lambda: OtelSink(
            endpoint=url,
            headers={"authorization": "Bearer t"},
            content=content,
            redactor=Redactor([SECRET]),
            timeout_s=1.0,
        ),
        sender=partial(ObservationSender, collect_s=0.01),
    )


@asynccontextmanager
async def closing(tracer: SendingTracer) -> AsyncIterator[SendingTracer]:
    try:
        yield tracer
    finally:
        async with asyncio.timeout(60):
            await tracer.close()


async def traced(tell: Callable[[SendingTracer], None], count: int, *, content: bool = True) -> list[ReceivedSpan]:
    with langfuse_receiver() as receiver:
        async with closing(otel(receiver.url, content=content)) as tracer:
            tell(tracer)
            return await asyncio.to_thread(receiver.spans, count)


def whole_run(tracer: SendingTracer) -> None:
    tracer.generation(a_generation())
    tracer.tool_call(an_mcp_call())
    tracer.tool_call(a_native_call())
    tracer.run_finished(a_finished_run(), AGENT)


@pytest.mark.requirement("G1")
async def test_a_collector_gets_the_spans_that_langfuse_gets_with_the_names_and_ids_they_have_there() -> None:
    with langfuse_receiver() as collector, langfuse_receiver() as langfuse:
        sender = partial(ObservationSender, collect_s=0.01)
        to_langfuse = a_langfuse_tracer(langfuse.url, sender=sender)
        both = AllTracers(to_langfuse, otel(collector.url))
        both.generation(a_generation())
        both.tool_call(an_mcp_call())
        both.run_finished(a_finished_run(), AGENT)
        seen = [
            [(span.name, span.trace_id, span.span_id, span.parent_id) for span in spans]
            for spans in (
                await asyncio.to_thread(collector.spans, 3),
                await asyncio.to_thread(langfuse.spans, 3),
            )
        ]
        await both.close()
    assert seen[0] == seen[1]
    assert [name for name, *_ in seen[0]] == ["model_call", "mcp_tool__echo", "execute_run"]


@pytest.mark.requirement("G1")
async def test_a_model_call_says_what_the_conventions_ask_for() -> None:
    [span] = await traced(lambda tracer: tracer.generation(a_generation()), 1)
    told = span.values
    assert span.kind == CLIENT
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "openai"
    assert (told["gen_ai.request.model"], told["gen_ai.response.model"]) == ("small", "small-2")
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (100, 20)
    assert isinstance(told["gen_ai.response.finish_reasons"], list)
    asked = json.loads(str(told["gen_ai.input.messages"]))
    assert all(message.keys() == {"role", "parts"} for message in asked)
    [said] = json.loads(str(told["gen_ai.output.messages"]))
    assert said["role"] == "assistant"
    assert "finish_reason" in said
    assert json.loads(str(told["gen_ai.system_instructions"]))[0]["type"] == "text"


@pytest.mark.requirement("G1")
async def test_tool_calls_and_the_run_say_what_the_conventions_ask_for() -> None:
    spans = {span.name: span for span in await traced(whole_run, 4)}
    mcp, own, run = spans["mcp_tool__echo"].values, spans["tool__code_execution"].values, spans["execute_run"].values
    assert spans["mcp_tool__echo"].kind == INTERNAL
    assert (mcp["gen_ai.operation.name"], mcp["gen_ai.tool.type"]) == ("execute_tool", "extension")
    assert (mcp["mcp.method.name"], own["gen_ai.tool.type"]) == ("tools/call", "function")
    assert mcp["gen_ai.tool.call.id"]
    assert mcp["gen_ai.tool.call.result"] == "hi back"
    assert run["gen_ai.operation.name"] == "invoke_agent"
    assert run["gen_ai.agent.name"] == AGENT.config.name
    assert run["dragoman.status"] == "completed"


@pytest.mark.requirement("G1")
async def test_content_stays_out_where_the_setting_says_so_and_secrets_always_do() -> None:
    def tell(tracer: SendingTracer) -> None:
        tracer.generation(a_generation())
        tracer.tool_call(an_mcp_call(text=f"the key is {SECRET}", params={"note": SECRET}))

    without = await traced(tell, 2, content=False)
    assert not [name for span in without for name in span.values if "messages" in name or "tool.call.result" in name]
    shown = await traced(tell, 2)
    assert SECRET not in json.dumps([span.values for span in shown])
    assert any("gen_ai.tool.call.arguments" in span.values for span in shown)


@pytest.mark.requirement("G1", "H6")
async def test_a_failed_model_call_says_what_the_provider_said_unless_content_stays_out() -> None:
    said = ProviderError(status=400, code="invalid_request_error", message=f"no {SECRET}")
    failed = replace(a_generation(error_code="model_rejected"), provider_error=said)
    [span] = await traced(lambda tracer: tracer.generation(failed), 1)
    assert span.values["dragoman.provider_status"] == 400
    assert span.values["dragoman.provider_message"] == "no [redacted]"
    [without] = await traced(lambda tracer: tracer.generation(failed), 1, content=False)
    assert "dragoman.provider_message" not in without.values


@pytest.mark.requirement("G1")
async def test_a_collector_that_never_answers_holds_up_neither_the_caller_nor_the_end() -> None:
    with black_hole() as url:
        async with asyncio.timeout(10), closing(otel(url)) as tracer:
            whole_run(tracer)


@pytest.mark.requirement("G1")
async def test_the_export_goes_to_the_collectors_path_with_the_headers_that_were_set() -> None:
    with langfuse_receiver() as receiver:
        async with closing(otel(f"{receiver.url}/")) as tracer:
            tracer.generation(a_generation())
            request = await asyncio.to_thread(receiver.next_request)
    assert request.path == "/v1/traces"
    assert request.headers["authorization"] == "Bearer t"
    assert request.spans[0].resource["service.name"] == "dragoman"
