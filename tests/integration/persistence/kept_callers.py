"""Callers of a process that shares its database: with the caches of keys that the service has."""

from unittest.mock import create_autospec

from application.identity.authenticate import Authenticate
from application.identity.authenticate_person import AuthenticatePerson
from application.identity.caller_teams import CallerTeams
from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.system.ports import Clock
from application.system.rates import LocalRates
from infrastructure.assembly.storage import token_cache
from infrastructure.events.row_notifications import RowNotifications
from tests.contract.stores import Stores


def teams_of(stores: Stores) -> CallerTeams:
    return CallerTeams(
        memberships=stores.organization_groups,
        identities=stores.identity,
        user_access=stores.user_access,
        custom_roles=stores.custom_roles,
    )


def authenticating(stores: Stores, feed: RowNotifications, clock: Clock) -> Authenticate:
    """Keys alone: neither people's tokens nor impersonations."""
    return Authenticate(
        identities=stores.identity,
        custom_roles=stores.custom_roles,
        cache=token_cache(feed),
        limits=KeyLimits(every=None, rates=LocalRates(clock=clock), organizations=stores.organizations),
        uses=KeyUses(identities=stores.identity),
        people=create_autospec(AuthenticatePerson, instance=True),
        impersonations=create_autospec(Impersonations, instance=True),
        caller_teams=teams_of(stores),
        clock=clock,
    )
