"""SessionOfUser: how long a session of a user is valid, and with which role."""

from dataclasses import replace

import pytest

from application.identity.key_limits import KeyLimits
from application.identity.session_of_user import SessionOfUser, SessionOfUserCommand
from application.system.rates import LocalRates
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.identity.user_limits import UserLimits
from domain.rate_limit import RateLimit
from tests.builders import ORG, after, an_organization
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import PROVIDER, USER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.team_ports import caller_teams


class Ports:
    def __init__(self, user: User) -> None:
        state = InMemoryState()
        state.identity_providers[PROVIDER] = a_provider()
        state.users[USER] = user
        self.state, self.clock = state, FixedClock()
        limits = KeyLimits(
            every=RateLimit(calls=2, per_s=60),
            rates=LocalRates(clock=self.clock),
            organizations=InMemoryOrganizationStore(state),
        )
        self.session = SessionOfUser(
            user_access=InMemoryUserStore(state),
            custom_roles=InMemoryCustomRoleStore(state),
            caller_teams=caller_teams(state),
            limits=limits,
            clock=self.clock,
        )

    async def principal(self) -> Principal:
        command = SessionOfUserCommand(organization_id=ORG, user_id=USER, expires_at=after(60))
        return await self.session.execute(command)


@pytest.mark.requirement("P1")
async def test_a_session_has_the_role_that_the_user_has_now() -> None:
    ports = Ports(a_user(role=Role.VIEWER))
    assert await ports.principal() == a_user(role=Role.VIEWER).principal(after(60))
    ports.state.users[USER] = a_user(role=Role.ADMIN)
    assert (await ports.principal()).role is Role.ADMIN
    with refused("rate_limited"):
        await ports.principal()


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("status", [UserStatus.DEACTIVATED, UserStatus.REMOVED])
async def test_a_session_of_a_user_who_is_not_active_is_refused(status: UserStatus) -> None:
    with refused("token_invalid"):
        await Ports(a_user(status=status)).principal()


@pytest.mark.requirement("P1")
async def test_a_session_ends_at_its_time_and_with_its_provider() -> None:
    ports = Ports(a_user())
    ports.state.identity_providers.clear()
    with refused("token_invalid"):
        await ports.principal()
    late = Ports(a_user())
    late.clock.advance(60)
    with refused("token_invalid"):
        await late.principal()


@pytest.mark.requirement("P2")
async def test_the_organizations_limit_of_the_user_applies_as_it_is_now() -> None:
    ports = Ports(a_user())
    once = UserLimits(rate_limit=RateLimit(calls=1, per_s=60))
    ports.state.organizations[ORG] = replace(an_organization(), limits_of_users={USER: once})
    await ports.principal()
    with refused("rate_limited"):
        await ports.principal()
    ports.state.organizations[ORG] = an_organization()
    await ports.principal()
