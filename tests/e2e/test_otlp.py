"""A service whose metrics and log lines go to a collector, and one whose collector is absent."""

from pathlib import Path

import pytest

from tests.e2e.service import a_turn, serving
from tests.integration.mcp.parts import free_port
from tests.integration.tracing.collector import a_collector, attributes_of

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("K8")]

ON = {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "none"}


def test_metrics_and_lines_of_a_run_reach_the_collector_and_traces_do_not(tmp_path: Path) -> None:
    with a_collector() as collector:
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
        with serving(tmp_path / "home", **ON, **settings, DRAGOMAN_LOG_SLOW_MS="1") as service:
            service.agent("first", service.script("hello", a_turn("Hi")))
            service.run("first")
            lines = collector.next_logs()
            while not any("request_id" in attributes_of(record.attributes) for _, record in lines):
                lines = collector.next_logs()
            metrics = collector.next_metrics()
            while "dragoman_runs_ended" not in metrics:
                metrics = collector.next_metrics()

    [ended] = metrics["dragoman_runs_ended"].sum.data_points
    assert ended.as_double == 1
    assert collector.resource["service.name"] == "dragoman"
    assert "/v1/traces" not in collector.paths


def test_a_service_works_and_stops_while_its_collector_is_absent(tmp_path: Path) -> None:
    settings = {**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    with serving(tmp_path / "home", **settings) as service:
        service.agent("first", service.script("hello", a_turn("Hi")))
        assert service.run("first")["run"]["status"] == "completed"
