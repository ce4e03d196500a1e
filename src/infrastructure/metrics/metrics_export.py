"""Sends this process's metrics to a collector, beside the page that Prometheus reads."""

from prometheus_client import Metric

from application.system.periodic import every
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.page import PrometheusPage
from infrastructure.tracing.observation_sender import BackgroundSender

Families = tuple[Metric, ...]


class MetricsExport:
    """Rules:
    - The values are those of `/metrics`, cumulative since the start: nothing is counted twice, and
      a lost export loses nothing but its moment.
    - Only the backlog is read on the event loop; another thread collects and sends.
    """

    def __init__(
        self,
        *,
        page: PrometheusPage,
        instruments: Instruments,
        sender: BackgroundSender[Families],
        interval_s: float,
    ) -> None:
        self._page = page
        self._instruments = instruments
        self._sender = sender
        self._interval_s = interval_s

    async def execute(self) -> None:
        await self._page.refresh()
        self._sender.submit(lambda: tuple(self._instruments.registry.collect()))

    async def keep(self) -> None:
        """Export periodically until cancelled."""
        await every(self._interval_s, self.execute, task="metrics-export")

    async def close(self) -> None:
        """Export a last time, within 2.5 seconds."""
        await self.execute()
        await self._sender.close()
