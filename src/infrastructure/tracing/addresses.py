"""Addresses of traces: Langfuse has a page for each; other collectors only know its id."""

from application.tracing.ports import TraceAddress
from domain.runs.run import Run
from infrastructure.tracing import span_ids
from infrastructure.tracing.observations import traced_as


class BackendTraceAddresses:
    """`web` is Langfuse's address, if traces go there; `enabled` is whether tracing is on."""

    def __init__(self, *, enabled: bool, web: str | None) -> None:
        self._enabled = enabled
        self._web = web

    def of(self, run: Run) -> TraceAddress | None:
        """None without a backend. Langfuse redirects from a trace id to the page in its project."""
        if not self._enabled:
            return None
        trace_id = f"{span_ids.trace_id(traced_as(run)):032x}"
        url = None if self._web is None else f"{self._web.rstrip('/')}/trace/{trace_id}"
        return TraceAddress(trace_id=trace_id, url=url)
