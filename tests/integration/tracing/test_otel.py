"""Spans as a collector receives them over the real wire, by the conventions for generative AI."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from application.tracing.ports import GatewayCallRecord
from domain.gateway.call import GatewaySettlement
from domain.runs.provider_error import ProviderError
from domain.tools.result import ToolResult
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.all_tracers import AllTracers
from infrastructure.tracing.observation_sender import ObservationSender
from infrastructure.tracing.otel_sink import OtelSink
from infrastructure.tracing.sending import OpenSender, SendingTracer
from tests.builders import a_tool, after
from tests.gateway_builders import a_gateway_call, a_gateway_session
from tests.integration.tracing.langfuse_tracers import PatientSender, a_langfuse_tracer
from tests.integration.tracing.receivers import ReceivedSpan, black_hole, langfuse_receiver
from tests.integration.tracing.records import AGENT, a_finished_run, a_generation, a_native_call, an_mcp_call

SETTLED = GatewaySettlement(call=a_gateway_call(), result=ToolResult.succeeded("hi"), duration_ms=5, at=after(1))
SECRET = "hunter22-hunter22"
CLIENT, SERVER, INTERNAL = 3, 2, 1
PROMPT = partial(PatientSender, collect_s=0.01)


def otel(url: str, *, content: bool = True, timeout_s: float = 60.0, sender: OpenSender = PROMPT) -> SendingTracer:
    return SendingTracer(
        lambda: OtelSink(
            endpoint=url,
            headers={"authorization": "Bearer t"},
            content=content,
            redactor=Redactor([SECRET]),
            timeout_s=timeout_s,
        ),
        sender=sender,
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
async def test_a_collector_gets_the_spans_that_langfuse_gets_with_their_ids_and_names_of_the_conventions() -> None:
    with langfuse_receiver() as collector, langfuse_receiver() as langfuse:
        to_langfuse = a_langfuse_tracer(langfuse.url, sender=PROMPT)
        both = AllTracers(to_langfuse, otel(collector.url))
        both.generation(a_generation())
        both.tool_call(an_mcp_call())
        both.run_finished(a_finished_run(), AGENT)
        seen = [
            [(span.name, (span.trace_id, span.span_id, span.parent_id)) for span in spans]
            for spans in (
                await asyncio.to_thread(collector.spans, 3),
                await asyncio.to_thread(langfuse.spans, 3),
            )
        ]
        await both.close()
    assert [ids for _, ids in seen[0]] == [ids for _, ids in seen[1]]
    assert [name for name, _ in seen[0]] == [
        "chat small",
        "tools/call mcp__files__echo",
        f"invoke_agent {AGENT.config.name}",
    ]
    assert [name for name, _ in seen[1]] == ["model_call", "mcp_tool__echo", "execute_run"]


@pytest.mark.requirement("G1")
async def test_a_model_call_says_what_the_conventions_ask_for() -> None:
    [span] = await traced(lambda tracer: tracer.generation(a_generation()), 1)
    told = span.values
    assert span.kind == CLIENT
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "openai"
    assert told["gen_ai.request.stream"] is True
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
    called, executed = spans["tools/call mcp__files__echo"], spans["execute_tool code_execution"]
    mcp, own, run = called.values, executed.values, spans[f"invoke_agent {AGENT.config.name}"].values
    assert (called.kind, executed.kind) == (CLIENT, INTERNAL)
    assert (mcp["gen_ai.operation.name"], mcp["gen_ai.tool.type"]) == ("execute_tool", "extension")
    assert (mcp["mcp.method.name"], own["gen_ai.tool.type"]) == ("tools/call", "function")
    assert mcp["gen_ai.tool.call.id"]
    assert mcp["gen_ai.tool.call.result"] == "hi back"
    assert run["gen_ai.operation.name"] == "invoke_agent"
    assert run["gen_ai.agent.name"] == AGENT.config.name
    assert run["dragoman.status"] == "completed"
    assert (run["gen_ai.provider.name"], run["gen_ai.request.model"]) == ("scripted", "demo.yaml")
    assert (run["gen_ai.usage.input_tokens"], run["gen_ai.usage.output_tokens"]) == (0, 0)


@pytest.mark.requirement("G1")
async def test_a_failed_call_of_an_mcp_tool_has_the_error_type_of_the_conventions() -> None:
    [span] = await traced(lambda tracer: tracer.tool_call(an_mcp_call(error_code="mcp_tool_error")), 1)
    assert span.values["error.type"] == "tool_error"


@pytest.mark.requirement("G1", "F5")
async def test_a_call_through_the_gateway_is_a_server_span_without_a_parent() -> None:
    record = GatewayCallRecord(session=a_gateway_session(), agent=AGENT, tool=a_tool(), settlement=SETTLED)
    [span] = await traced(lambda tracer: tracer.gateway_call(record), 1)
    assert (span.name, span.kind, span.parent_id) == ("tools/call mcp__files__echo", SERVER, "")


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
        tracer = otel(url, timeout_s=300, sender=partial(ObservationSender, collect_s=0.01))
        async with asyncio.timeout(60), closing(tracer):  # one wait for the collector would be longer
            whole_run(tracer)


@pytest.mark.requirement("G1")
async def test_the_export_goes_to_the_collectors_path_with_the_headers_that_were_set() -> None:
    with langfuse_receiver() as receiver:
        async with closing(otel(f"{receiver.url}/")) as tracer:
            tracer.generation(a_generation())
            request = await asyncio.to_thread(receiver.next_request)
    assert request.path == "/v1/traces"
    assert request.headers["authorization"] == "Bearer t"
    resource = request.spans[0].resource
    assert resource["service.name"] == "dragoman"
    assert resource["service.instance.id"]
    assert (resource["telemetry.sdk.name"], resource["telemetry.sdk.language"]) == ("opentelemetry", "python")
