"""Places that traces are sent to: one that decodes the real export, one that refuses, one that
never answers."""

import gzip
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span as it was on the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    is_error: bool
    attributes: dict[str, str]
    values: dict[str, str | int | float | list[str]]
    kind: int
    resource: dict[str, str]
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One export."""

    path: str
    headers: dict[str, str]
    spans: tuple[ReceivedSpan, ...]


class LangfuseReceiver:
    """Speaks Langfuse's OTLP endpoint; answers with `status`."""

    def __init__(self, server: ThreadingHTTPServer, requests: "queue.Queue[ReceivedRequest]") -> None:
        self._server = server
        self._requests = requests

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next_request(self) -> ReceivedRequest:
        """The next export, awaited for at most a minute."""
        return self._requests.get(timeout=60)

    def spans(self, count: int) -> list[ReceivedSpan]:
        """That many spans, from as many exports as it takes."""
        received: list[ReceivedSpan] = []
        while len(received) < count:
            received.extend(self.next_request().spans)
        return received


@contextmanager
def langfuse_receiver(status: int = 200, *, answers: bool = True) -> Iterator[LangfuseReceiver]:
    """A receiver on a free port. Without `answers` it reads requests and leaves their clients
    waiting until it closes."""
    requests: queue.Queue[ReceivedRequest] = queue.Queue()
    may_answer = threading.Event()
    if answers:
        may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            requests.put(ReceivedRequest(path=self.path, headers=headers, spans=_spans(body)))
            may_answer.wait()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield LangfuseReceiver(server, requests)
    finally:
        may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def refusing_address() -> Iterator[str]:
    """A URL where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: no other process can come to listen there
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


@contextmanager
def black_hole() -> Iterator[str]:
    """A URL where connections are accepted and nothing is ever answered."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _value(value: AnyValue) -> str | int | float | list[str]:
    match value.WhichOneof("value"):
        case "int_value":
            return value.int_value
        case "bool_value":
            return value.bool_value
        case "double_value":
            return value.double_value
        case "array_value":
            return [each.string_value for each in value.array_value.values]
        case _:
            return value.string_value


def _spans(body: bytes) -> tuple[ReceivedSpan, ...]:
    request = ExportTraceServiceRequest.FromString(body)
    return tuple(
        ReceivedSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            start_ns=span.start_time_unix_nano,
            end_ns=span.end_time_unix_nano,
            is_error=span.status.code == 2,
            attributes={entry.key: entry.value.string_value for entry in span.attributes},
            values={entry.key: _value(entry.value) for entry in span.attributes},
            kind=span.kind,
            resource={entry.key: entry.value.string_value for entry in resource_spans.resource.attributes},
            scope=scope_spans.scope.name,
        )
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    )
