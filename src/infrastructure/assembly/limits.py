"""Builds limits: of this process on SQLite, which has one, of all processes on PostgreSQL. ADR 0081."""

from typing import Protocol

from application.system.ports import Clock
from application.system.rates import LocalRates, Rates
from application.system.shared_rates import SharedRates
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.limits.rate_leases import SqlRateLeases
from infrastructure.settings import Settings


class OpenRates(Rates, Protocol):
    """Rates with an end."""

    async def close(self) -> None:
        """Wait for questions under way."""
        ...


def rates(settings: Settings, *, database: Database, clock: Clock) -> OpenRates:
    if settings.postgres_url is None:
        return LocalRates(clock=clock)
    return SharedRates(leases=SqlRateLeases(database=database), clock=clock)
