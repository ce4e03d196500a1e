"""A collector that takes everything over OTLP and decodes metrics and logs."""

import gzip
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

WAIT_S = 60


class Collector:
    """`resource` is that of the newest request, `headers` its headers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.resource: dict[str, str] = {}
        self.headers: dict[str, str] = {}
        self.paths: list[str] = []

    def next_metrics(self) -> dict[str, Metric]:
        """The metrics of the next export, by name."""
        request = ExportMetricsServiceRequest.FromString(self._next("/v1/metrics"))
        self.resource = attributes_of(request.resource_metrics[0].resource.attributes)
        return {
            metric.name: metric
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def next_logs(self) -> list[tuple[str, LogRecord]]:
        """The lines of the next export, each with its logger."""
        request = ExportLogsServiceRequest.FromString(self._next("/v1/logs"))
        self.resource = attributes_of(request.resource_logs[0].resource.attributes)
        return [
            (scope.scope.name, record)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def _next(self, path: str) -> bytes:
        while True:
            found, body = self.bodies.get(timeout=WAIT_S)
            self.paths.append(found)
            if found == path:
                return body


def attributes_of(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes as texts."""
    found: dict[str, str] = {}
    for each in attributes:
        value = each.value
        found[each.key] = str(getattr(value, str(value.WhichOneof("value"))))
    return found


@contextmanager
def a_collector(status: int = 200) -> Iterator[Collector]:
    """A collector on a free port, which answers with `status`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            collector.headers = {name.lower(): value for name, value in self.headers.items()}
            collector.bodies.put((self.path, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
