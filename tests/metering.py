"""Metrics of a process that nobody runs, for tests of what reports to them."""

from application.system.ports import Clock
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.meters import PrometheusMeters
from tests.doubles.surroundings import FixedClock


def a_meter(clock: Clock | None = None, instruments: Instruments | None = None) -> PrometheusMeters:
    """The real meters, over instruments of their own unless given others."""
    return PrometheusMeters(instruments=instruments or Instruments(version="test"), clock=clock or FixedClock())


def sample(instruments: Instruments, name: str, **labels: str) -> float | None:
    """What the page would say for a metric with these labels; None if it is not there."""
    return instruments.registry.get_sample_value(name, labels)
