"""Builds what monitoring reads."""

from application.metrics.ports import BacklogReader
from application.runs.execution.active_runs import ActiveRuns
from application.system.ports import Clock
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.page import PrometheusPage
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.runs.backlog import SqlBacklogReader


def page(*, instruments: Instruments, database: Database, active_runs: ActiveRuns, clock: Clock) -> PrometheusPage:
    backlog: BacklogReader = SqlBacklogReader(database=database)
    return PrometheusPage(instruments=instruments, backlog=backlog, active_runs=active_runs, clock=clock)
