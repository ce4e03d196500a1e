"""The meters of what goes in and out over HTTP."""

from datetime import datetime

from application.system.ports import Clock
from infrastructure.metrics.instruments import Instruments


class PrometheusMeters:
    """The ports `RequestMeter` and `EventMeter`."""

    def __init__(self, *, instruments: Instruments, clock: Clock) -> None:
        self._instruments = instruments
        self._clock = clock

    def request(self, *, method: str, path: str, status: int | None, seconds: float) -> None:
        """A request is over."""
        shown = "none" if status is None else str(status)
        self._instruments.requests.labels(method, path, shown).inc()
        self._instruments.request.labels(method, path).observe(seconds)

    def event_sent(self, *, at: datetime) -> None:
        """An event goes out; clocks of two machines may say that it was stored later than that."""
        self._instruments.event_lag.observe(max((self._clock.now() - at).total_seconds(), 0.0))
