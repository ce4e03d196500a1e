"""Where people find the trace of a run: Langfuse has a page for each, a collector of spans knows its id alone."""

from application.tracing.ports import TraceAddress
from domain.runs.run import Run
from infrastructure.tracing import span_ids
from infrastructure.tracing.observations import traced_as


class BackendTraceAddresses:
    """`web` is Langfuse's address, where traces go there; `enabled` whether they go anywhere."""

    def __init__(self, *, enabled: bool, web: str | None) -> None:
        self._enabled = enabled
        self._web = web

    def of(self, run: Run) -> TraceAddress | None:
        """None without a backend. Langfuse leads from an id alone to the page in its project."""
        if not self._enabled:
            return None
        trace_id = f"{span_ids.trace_id(traced_as(run)):032x}"
        url = None if self._web is None else f"{self._web.rstrip('/')}/trace/{trace_id}"
        return TraceAddress(trace_id=trace_id, url=url)
