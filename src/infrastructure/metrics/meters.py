"""Metrics of HTTP requests and of sent events."""

from datetime import datetime

from prometheus_client import Counter, Histogram

from application.system.ports import Clock
from infrastructure.metrics.instruments import Instruments


class PrometheusMeters:
    """The ports `RequestMeter` and `EventMeter`."""

    def __init__(self, *, instruments: Instruments, clock: Clock) -> None:
        self._instruments = instruments
        self._clock = clock
        self._of_route: dict[tuple[str, str, int | None], tuple[Counter, Histogram]] = {}

    def request(self, *, method: str, path: str, status: int | None, seconds: float) -> None:
        # Looking up a metric by labels costs more than counting.
        found = self._of_route.get((method, path, status))
        if found is None:
            found = self._of_route[method, path, status] = self._metrics(method, path, status)
        count, duration = found
        count.inc()
        duration.observe(seconds)

    def _metrics(self, method: str, path: str, status: int | None) -> tuple[Counter, Histogram]:
        shown = "none" if status is None else str(status)
        instruments = self._instruments
        return instruments.requests.labels(method, path, shown), instruments.request.labels(method, path)

    def event_sent(self, *, at: datetime) -> None:
        """Record the event's age. Clocks of two machines differ, so a negative age counts as
        zero."""
        self._instruments.event_lag.observe(max((self._clock.now() - at).total_seconds(), 0.0))
