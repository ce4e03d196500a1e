"""The client of Langfuse's SDK in the service: what it sends, logs and leaves behind, and what an
absent Langfuse costs."""

import asyncio
import base64
import io
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import langfuse
import pytest
from opentelemetry import trace

from domain.json_value import JsonObject
from infrastructure.runtime.logs import configure_logging
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.langfuse_sink import LangfuseSink
from infrastructure.tracing.observation_sender import ObservationSender, ObservationSink
from infrastructure.tracing.sending import SendingTracer
from tests.builders import a_message
from tests.e2e.processes import until
from tests.integration.tracing.langfuse_tracers import PatientSender, a_langfuse_tracer, langfuse_tracer, traced
from tests.integration.tracing.receivers import (
    black_hole,
    langfuse_receiver,
    refusing_address,
)
from tests.integration.tracing.records import (
    AGENT,
    a_finished_run,
    a_generation,
    an_mcp_call,
)

CLOSING_BOUND_S = 90
"""Far above the 3.5 s that closing may take, far below the wait for an answer."""


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.requirement("G1")
async def test_the_export_is_gzipped_otlp_with_basic_auth_on_langfuses_path() -> None:
    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url + "/", public_key="pk-lf-headers") as tracer:
            tracer.tool_call(an_mcp_call())
            request = await asyncio.to_thread(receiver.next_request)

    credentials = base64.b64encode(b"pk-lf-headers:sk-lf-2").decode()
    assert request.path == "/api/public/otel/v1/traces"
    assert request.headers["authorization"] == f"Basic {credentials}"
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["content-encoding"] == "gzip"
    assert request.headers["x-langfuse-ingestion-version"] == "4"
    assert request.headers["x-langfuse-public-key"] == "pk-lf-headers"
    assert request.headers["x-langfuse-sdk-name"] == "python"
    assert request.headers["x-langfuse-sdk-version"] == langfuse.__version__


@pytest.mark.requirement("G1", "B12")
async def test_headers_of_another_trace_backend_are_not_sent_to_langfuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "X-Team=collectors-key,authorization=Basic%20collectors,x-langfuse-ingestion-version=1",
    )
    names = ("X-Team", "authorization", "x-langfuse-ingestion-version")
    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url, foreign_headers=names) as tracer:
            tracer.tool_call(an_mcp_call())
            request = await asyncio.to_thread(receiver.next_request)

    assert "collectors" not in json.dumps(request.headers)
    assert request.headers["authorization"].startswith("Basic ")
    assert request.headers["x-langfuse-ingestion-version"] == "4"


@pytest.mark.requirement("G1")
async def test_the_process_has_no_tracer_provider_of_langfuse() -> None:
    await traced(lambda tracer: tracer.tool_call(an_mcp_call()))

    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@pytest.mark.requirement("G1")
async def test_closing_ends_the_threads_that_send() -> None:
    def sending() -> set[str]:
        """By class or name: exports, scores, media, and the tracer's own."""
        started = set(threading.enumerate()) - before
        kinds = {type(thread).__name__ for thread in started} | {thread.name for thread in started}
        return kinds & {"OtelBatchSpanRecordProcessor", "ScoreConsumer", "MediaUploadConsumer", "traces-sender"}

    before = set(threading.enumerate())
    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url) as tracer:
            tracer.tool_call(an_mcp_call())
            await asyncio.to_thread(receiver.next_request)
            assert len(sending()) == 4

    until(lambda: not sending(), what="the end of these threads")  # closing waits a second for them


@pytest.mark.requirement("G1")
async def test_a_second_client_of_the_same_key_is_refused_and_costs_the_caller_nothing() -> None:
    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url, public_key="pk-lf-same") as tracer:
            tracer.tool_call(an_mcp_call())
            await asyncio.to_thread(receiver.next_request)
        with pytest.raises(RuntimeError):
            LangfuseSink(
                public_key="pk-lf-same",
                secret_key="sk-lf-2",
                base_url=receiver.url,
                content=True,
                redactor=Redactor(),
                timeout_s=5,
                foreign_headers=(),
            )
        async with langfuse_tracer(receiver.url, public_key="pk-lf-same") as tracer:
            tracer.tool_call(an_mcp_call())


@pytest.mark.requirement("G1", "G2", "B12")
@pytest.mark.usefixtures("logging_as_it_was")
async def test_what_the_client_logs_goes_through_the_log_of_the_service_and_names_no_key(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = io.StringIO()
    configure_logging(level="debug", form="json", redactor=Redactor(), stream=lines)
    with langfuse_receiver(status=401) as receiver:
        async with langfuse_tracer(receiver.url, public_key="pk-lf-logged") as tracer:
            tracer.tool_call(an_mcp_call())
            await asyncio.to_thread(receiver.next_request)
    logging.getLogger("httpx").warning("to the service's log only")
    logging.getLogger("langfuse").warning("about what the service says itself")

    events = [json.loads(line)["event"] for line in lines.getvalue().splitlines()]
    assert "traces cannot be sent; dropped until the backend answers" in events
    assert events.count("to the service's log only") == 1
    assert "about what the service says itself" not in events
    assert "sk-lf-2" not in lines.getvalue()
    assert base64.b64encode(b"pk-lf-logged:sk-lf-2").decode() not in lines.getvalue()
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.requirement("G1")
async def test_files_in_results_are_described_and_not_uploaded() -> None:
    uri = "data:image/png;base64," + "A" * 4_000
    inline: JsonObject = {"source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}, "uri": uri}

    def tell(tracer: SendingTracer) -> None:
        tracer.generation(a_generation(messages=(a_message(1, uri),), arguments=inline))
        tracer.tool_call(an_mcp_call(text=json.dumps(inline), params=inline))
        tracer.tool_call(an_mcp_call(index=1, text=uri))

    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url) as tracer:
            tell(tracer)
            spans = await asyncio.to_thread(receiver.spans, 3)
        assert receiver._requests.empty(), "an upload begins with a request of its own"

    everything = json.dumps([span.attributes for span in spans])
    assert "AAAA" not in everything
    assert "langfuseMedia" not in everything
    assert spans[2].attributes["langfuse.observation.output"] == "data:image/png;base64 (4000 characters)"
    assert json.loads(spans[1].attributes["langfuse.observation.output"]) == {
        "source": {"type": "base64", "media_type": "image/png", "characters": 4_000},
        "uri": "data:image/png;base64 (4000 characters)",
    }


@pytest.mark.requirement("G1")
async def test_closing_sends_what_is_still_queued() -> None:
    with langfuse_receiver() as receiver:
        tracer = a_langfuse_tracer(receiver.url, sender=partial(PatientSender, collect_s=3_600))
        for index in range(200):
            tracer.tool_call(an_mcp_call(index=index))
        async with asyncio.timeout(60):
            await tracer.close()

        spans = await asyncio.to_thread(receiver.spans, 200)

    assert len({span.span_id for span in spans}) == 200


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("absent", [refusing_address, black_hole])
async def test_an_absent_backend_holds_nothing_up_and_closing_is_bounded(
    absent: Callable[[], AbstractContextManager[str]],
) -> None:
    with absent() as url:
        tracer = a_langfuse_tracer(url, timeout_s=300)
        async with asyncio.timeout(60):  # one wait for the backend would be longer
            for index in range(1_000):
                tracer.tool_call(an_mcp_call(index=index))
            tracer.run_finished(a_finished_run(), AGENT)
            await tracer.close()
        tracer.tool_call(an_mcp_call())  # telling a closed tracer is harmless


@pytest.mark.requirement("G1")
async def test_a_backend_that_accepts_and_never_answers_costs_the_caller_nothing_and_closing_is_bounded() -> None:
    with langfuse_receiver(answers=False) as receiver:
        tracer = a_langfuse_tracer(receiver.url, timeout_s=300, sender=partial(ObservationSender, collect_s=0.01))
        tracer.generation(a_generation())
        await asyncio.to_thread(receiver.next_request)  # the export is under way
        async with asyncio.timeout(CLOSING_BOUND_S):
            for index in range(3_000):  # more than the queue holds
                tracer.tool_call(an_mcp_call(index=index))
            await tracer.close()


@pytest.mark.requirement("G1")
async def test_a_backend_that_turns_traces_away_is_given_a_rest() -> None:
    with langfuse_receiver(status=401) as receiver:
        senders: list[ObservationSender] = []

        def remembered(connect: Callable[[], ObservationSink]) -> ObservationSender:
            senders.append(PatientSender(connect, collect_s=0.01))
            return senders[0]

        tracer = a_langfuse_tracer(receiver.url, sender=remembered)
        tracer.tool_call(an_mcp_call())
        await asyncio.to_thread(receiver.next_request)
        tracer.tool_call(an_mcp_call(index=1))
        async with asyncio.timeout(60):
            await tracer.close()

    assert senders[0].dropped == 2
    assert receiver._requests.empty()
