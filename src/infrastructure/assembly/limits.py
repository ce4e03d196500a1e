"""Builds limits: of this process on SQLite, which has one, of all processes on PostgreSQL. ADR
0081."""

from typing import Protocol

from application.system.ports import Clock, IdSource
from application.system.rates import LocalRates, Rates, RateUse
from application.system.shared_permits import PermitSignals, SharedPermits
from application.system.shared_rates import SharedRates
from infrastructure.mcp.wrappers.shared_breakers import SharedBreakers
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.limits.breaker_states import SqlBreakerStates
from infrastructure.persistence.limits.permit_leases import SqlPermitLeases
from infrastructure.persistence.limits.rate_leases import SqlRateLeases
from infrastructure.settings import Settings


class OpenRates(Rates, RateUse, Protocol):
    """Rates that can be read, with an end."""

    async def close(self) -> None:
        """Wait for questions under way."""
        ...


def rates(settings: Settings, *, database: Database, clock: Clock) -> OpenRates:
    if settings.postgres_url is None:
        return LocalRates(clock=clock)
    return SharedRates(leases=SqlRateLeases(database=database), clock=clock)


def permits(settings: Settings, *, database: Database, ids: IdSource, signals: PermitSignals) -> SharedPermits | None:
    """None for a database of this process alone."""
    if settings.postgres_url is None:
        return None
    return SharedPermits(leases=SqlPermitLeases(database=database), holder=ids.new("prc"), signals=signals)


def breakers(settings: Settings, *, database: Database, signals: PermitSignals) -> SharedBreakers | None:
    """None for a database of this process alone."""
    if settings.postgres_url is None:
        return None
    return SharedBreakers(states=SqlBreakerStates(database=database), signals=signals)
