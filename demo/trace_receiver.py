"""A local stand-in for a tracing backend: receives the real OTLP export of the demo and keeps the
spans to be shown."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A received span; times are nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, str]


class TraceReceiver:
    """Spans received so far, and the address to send them to."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.spans: list[Span] = []

    def take(self, body: bytes) -> None:
        """Decode one export request."""
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        parent_id=span.parent_span_id.hex(),
                        name=span.name,
                        start_ns=span.start_time_unix_nano,
                        end_ns=span.end_time_unix_nano,
                        attributes={item.key: item.value.string_value for item in span.attributes},
                    )
                    for span in scope.spans
                ]

    def lines(self) -> list[str]:
        """The spans as a tree, one line each, in order of time."""
        known = {span.span_id for span in self.spans}
        lines: list[str] = []

        def show(span: Span, depth: int) -> None:
            duration_ms = (span.end_ns - span.start_ns) / 1e6
            kind = span.attributes.get("langfuse.observation.type", "span")
            lines.append(f"{'  ' * depth}{span.name}  [{kind}]  {duration_ms:.0f} ms")
            for child in sorted(self.spans, key=lambda other: other.start_ns):
                if child.parent_id == span.span_id:
                    show(child, depth + 1)

        for span in sorted(self.spans, key=lambda other: other.start_ns):
            if span.parent_id not in known:
                show(span, 0)
        return lines


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Listen on a free port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path.endswith("/v1/traces"):
                receiver.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep the terminal for the demo."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = TraceReceiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
