"""KeyValidity over in-memory tables."""

from application.identity.key_validity import KeyValidity
from application.identity.token_cache import TokenCache
from application.system.ports import Clock
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState


def key_validity(state: InMemoryState, clock: Clock) -> KeyValidity:
    """Without a cache."""
    return KeyValidity(
        identities=InMemoryIdentityStore(state),
        user_access=InMemoryUserStore(state),
        console_sessions=InMemoryConsoleSessionStore(state),
        cache=TokenCache(capacity=0),
        clock=clock,
    )
