"""Metrics of a process that nobody runs, for tests of what reports to them."""

from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.system.ports import Clock
from domain.ids import WorkerId
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.meters import PrometheusMeters
from infrastructure.metrics.page import PrometheusPage
from tests.contract.stores import Stores
from tests.doubles.surroundings import FixedClock


def a_meter(clock: Clock | None = None, instruments: Instruments | None = None) -> PrometheusMeters:
    """The real meters, over instruments of their own unless given others."""
    return PrometheusMeters(instruments=instruments or Instruments(version="test"), clock=clock or FixedClock())


def a_page(stores: Stores, instruments: Instruments, clock: Clock | None = None) -> PrometheusPage:
    """The real page, over these stores; it counts whenever it is asked."""
    clock = clock or FixedClock()
    settings = LeaseSettings()
    active_runs = ActiveRuns(leases=stores.leases, clock=clock, worker_id=WorkerId("worker"), settings=settings)
    return PrometheusPage(
        instruments=instruments, backlog=stores.backlog, active_runs=active_runs, clock=clock, fresh_s=0
    )


def sample(instruments: Instruments, name: str, **labels: str) -> float | None:
    """What the page would say for a metric with these labels; None if it is not there."""
    return instruments.registry.get_sample_value(name, labels)
