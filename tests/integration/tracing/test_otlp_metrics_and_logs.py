"""Metrics and log lines over OTLP to a collector that decodes them, and to none."""

import json
import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metrics_export import Families
from infrastructure.metrics.otel_metrics import OtelMetricSink
from infrastructure.runtime.logs import log_context
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.log_handler import MAX_TEXT, CollectorLogHandler, LogLine
from infrastructure.tracing.observation_sender import BackgroundSender
from infrastructure.tracing.otel_logs import OtelLogSink
from tests.integration.tracing.collector import a_collector, attributes_of
from tests.integration.tracing.langfuse_tracers import PatientSender
from tests.integration.tracing.receivers import black_hole

pytestmark = pytest.mark.requirement("K8")

LOGGER = "dragoman.tests.otlp"


def collected(instruments: Instruments) -> Families:
    return tuple(instruments.registry.collect())


def a_record(text: str, *arguments: object, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    return logging.getLogger(LOGGER).makeRecord(LOGGER, level, __file__, 1, text, arguments, None, extra=extra)


def test_metrics_have_the_values_of_the_page_and_are_not_counted_twice() -> None:
    instruments = Instruments(version="1.2.3")
    instruments.runs_ended.labels("completed").inc(3)
    instruments.runs_in_hand.set(2)
    for seconds in (0.02, 0.02, 4.0, 10_000.0):
        instruments.run_active.observe(seconds)
    with a_collector() as collector:
        sink = OtelMetricSink(endpoint=collector.url, headers={"authorization": "Bearer t"}, timeout_s=60)
        assert sink.send([collected(instruments)])
        first = collector.next_metrics()
        instruments.runs_ended.labels("completed").inc()
        older = collected(instruments)
        instruments.runs_ended.labels("completed").inc()
        assert sink.send([older, collected(instruments)])
        second = collector.next_metrics()
        sink.close()

        assert collector.headers["authorization"] == "Bearer t"
        assert collector.resource["service.name"] == "dragoman"
        assert collector.bodies.empty()

    [before], [after] = [each["dragoman_runs_ended"].sum.data_points for each in (first, second)]
    assert first["dragoman_runs_ended"].sum.is_monotonic
    assert (
        first["dragoman_runs_ended"].sum.aggregation_temporality
        == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    assert (before.as_double, after.as_double) == (3, 5)
    assert before.start_time_unix_nano == after.start_time_unix_nano < before.time_unix_nano < after.time_unix_nano
    assert attributes_of(before.attributes) == {"status": "completed"}
    assert first["dragoman_runs_in_hand"].gauge.data_points[0].as_double == 2
    [histogram] = first["dragoman_run_active_seconds"].histogram.data_points
    assert histogram.count == sum(histogram.bucket_counts) == 4
    assert histogram.sum == pytest.approx(10_004.04)
    assert len(histogram.bucket_counts) == len(histogram.explicit_bounds) + 1
    at = dict(zip(histogram.explicit_bounds, histogram.bucket_counts, strict=False))
    assert (at[0.01], at[0.05], at[5.0], histogram.bucket_counts[-1]) == (0, 2, 1, 1)
    assert "dragoman_tokens" not in first


async def test_log_lines_have_their_ids_and_no_secret() -> None:
    with a_collector() as collector:
        sender: BackgroundSender[LogLine] = PatientSender(
            lambda: OtelLogSink(endpoint=collector.url, headers={}, timeout_s=60), what="logs", collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor(["planted-secret-value"]))
        with log_context(run_id="run_1", thread_id="thr_1", organization_id="org_1"):
            handler.handle(a_record("said %s", "planted-secret-value", level=logging.WARNING, api_key="x" * 20, turn=3))
        await handler.finish()
        [(logger, record)] = collector.next_logs()

    fields = attributes_of(record.attributes)
    assert logger == LOGGER
    assert record.body.string_value == "said [redacted]"
    assert (record.severity_text, record.severity_number) == ("WARNING", 13)
    assert {"run_id": "run_1", "thread_id": "thr_1", "organization_id": "org_1"}.items() <= fields.items()
    assert (fields["api_key"], fields["turn"]) == ("[redacted]", "3")
    assert "planted" not in json.dumps(fields)


async def test_an_exception_goes_along_with_its_line() -> None:
    with a_collector() as collector:
        sender: BackgroundSender[LogLine] = PatientSender(
            lambda: OtelLogSink(endpoint=collector.url, headers={}, timeout_s=60), what="logs", collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor())
        try:
            raise ValueError("not this")
        except ValueError as error:
            record = a_record("failed", level=logging.ERROR)
            record.exc_info = (type(error), error, error.__traceback__)
        handler.handle(record)
        await handler.finish()
        [(_, sent)] = collector.next_logs()

    fields = attributes_of(sent.attributes)
    assert fields["exception.type"] == "ValueError"
    assert "not this" in fields["exception.stacktrace"]


async def test_a_long_line_is_cut_before_it_is_queued_and_no_part_of_a_secret_is_left() -> None:
    secret = "planted-secret-value"
    text = "x" * (MAX_TEXT - 5) + secret + "y" * 10_000_000
    with a_collector() as collector:
        sender: BackgroundSender[LogLine] = PatientSender(
            lambda: OtelLogSink(endpoint=collector.url, headers={}, timeout_s=60), what="logs", collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor([secret]))
        handler.handle(a_record("%s", text, reply=text, nested={"inner": [text], 3: secret}))
        await handler.finish()
        [(_, record)] = collector.next_logs()

    fields = attributes_of(record.attributes)
    for said in (record.body.string_value, str(fields["reply"]), str(fields["nested"])):
        assert MAX_TEXT < len(said) < MAX_TEXT + 100
        assert "plant" not in said
        assert "characters more]" in said


async def test_a_line_that_cannot_be_made_does_not_disturb_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with a_collector() as collector:
        sender: BackgroundSender[LogLine] = PatientSender(
            lambda: OtelLogSink(endpoint=collector.url, headers={}, timeout_s=60), what="logs", collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor())
        handler.handle(a_record("%d turns", "many"))
        handler.handle(a_record("next"))
        await handler.finish()
        [(_, record)] = collector.next_logs()

    assert record.body.string_value == "next"


async def test_a_collector_that_rejects_lines_does_not_get_those_about_that() -> None:
    with a_collector(status=400) as collector:
        sender: BackgroundSender[LogLine] = PatientSender(
            lambda: OtelLogSink(endpoint=collector.url, headers={}, timeout_s=60), what="logs", collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor())
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            handler.handle(a_record("first"))
            collector.next_logs()
            await handler.finish()
        finally:
            root.removeHandler(handler)

        assert collector.bodies.empty()
    assert sender.dropped >= 1


async def test_a_collector_that_never_answers_costs_a_line_nothing_and_memory_is_bounded() -> None:
    calling = threading.Event()
    threads: set[str] = set()

    class Slow(OtelLogSink):
        def send(self, lines: Sequence[LogLine]) -> bool:
            threads.add(threading.current_thread().name)
            calling.set()
            return super().send(lines)

    with black_hole() as url:
        sender: BackgroundSender[LogLine] = BackgroundSender(
            lambda: Slow(endpoint=url, headers={}, timeout_s=60), what="logs", queue_size=10, collect_s=0.01
        )
        handler = CollectorLogHandler(sender, redactor=Redactor())
        handler.handle(a_record("first"))
        assert calling.wait(60)
        for _ in range(1_000):
            handler.handle(a_record("more"))
        dropped = sender.dropped
        await sender.close(timeout_s=0.01)

    assert dropped == 990
    assert threads == {"logs-sender"}
