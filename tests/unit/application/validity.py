"""KeyValidity and Impersonations over in-memory tables."""

from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_validity import KeyValidity
from application.identity.token_cache import TokenCache
from application.system.ports import Clock
from application.system.rates import LocalRates
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.unit.application.team_ports import caller_teams


def key_validity(state: InMemoryState, clock: Clock) -> KeyValidity:
    """Without a cache."""
    return KeyValidity(
        identities=InMemoryIdentityStore(state),
        user_access=InMemoryUserStore(state),
        console_sessions=InMemoryConsoleSessionStore(state),
        impersonations=impersonations(state, clock),
        cache=TokenCache(capacity=0),
        caller_teams=caller_teams(state),
        clock=clock,
    )


def impersonations(state: InMemoryState, clock: Clock) -> Impersonations:
    """Without a rate limit."""
    return Impersonations(
        impersonations=InMemoryImpersonationStore(state),
        identities=InMemoryIdentityStore(state),
        user_access=InMemoryUserStore(state),
        custom_roles=InMemoryCustomRoleStore(state),
        limits=KeyLimits(every=None, rates=LocalRates(clock=clock), organizations=InMemoryOrganizationStore(state)),
        clock=clock,
    )
