"""BeginImpersonation and Impersonations: who acts as whom, how long, and as what a token of it is
taken."""

from dataclasses import replace

import pytest

from application.identity.begin_impersonation import BeginImpersonation, BeginImpersonationCommand, BegunImpersonation
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole
from domain.identity.impersonation import MAX_MINUTES, MAX_REASON, acting_as, who_acts
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId, UserId
from domain.rate_limit import RateLimit
from tests.builders import KEY, ORG, START, a_key, after, an_organization
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, SUPPORT, USER, a_person, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.validity import impersonations

pytestmark = pytest.mark.requirement("P7")
COMMAND = BeginImpersonationCommand(
    principal=a_person(Role.OPERATOR, id=SUPPORT), user_id=USER, reason="Ticket 4711", minutes=10
)
SUPPORTER = replace(a_user(SUPPORT, subject="support", role=Role.OPERATOR), may_impersonate=True)


class Ports:
    """Ann is an operator, and SUPPORT too, who may act as others."""

    def __init__(self) -> None:
        self.state, self.clock = InMemoryState(), FixedClock()
        self.state.identity_providers[PROVIDER] = a_provider()
        self.has(a_user(role=Role.OPERATOR))
        self.has(SUPPORTER)
        self.as_others = impersonations(self.state, self.clock)
        self._begin = BeginImpersonation(
            allowed=self.as_others,
            impersonations=InMemoryImpersonationStore(self.state),
            clock=self.clock,
            ids=SequentialIds(),
        )

    def has(self, user: User) -> None:
        self.state.users[user.id] = user

    async def begin(self, command: BeginImpersonationCommand = COMMAND) -> BegunImpersonation:
        return await self._begin.execute(command)


@pytest.fixture
def ports() -> Ports:
    return Ports()


async def test_who_may_acts_with_the_role_of_the_user_under_an_id_that_names_both(ports: Ports) -> None:
    ports.has(a_user(role=Role.RUNNER))
    begun = await ports.begin()
    assert begun.impersonation.expires_at == after(600)
    assert begun.token not in repr(begun)
    principal, _ = await ports.as_others.of_token(begun.token)
    assert (principal.role, principal.platform, principal.organization_id) == (Role.RUNNER, False, ORG)
    assert principal.key_id == f"impersonation:{SUPPORT}:{USER}"
    assert (str(who_acts(principal.key_id)), acting_as(principal.key_id)) == (SUPPORT, USER)
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.details) == (
        AuditAction.IMPERSONATION_BEGUN,
        SUPPORT,
        {"as": USER, "reason": "Ticket 4711", "minutes": 10},
    )


async def test_who_acts_as_a_user_is_not_the_user_and_has_no_accounts_of_theirs(ports: Ports) -> None:
    principal, _ = await ports.as_others.of_token((await ports.begin()).token)
    assert (principal.person_id, principal.acts_for) == (None, None)
    with refused("person_required"):
        principal.require_person()


async def test_a_platform_key_acts_as_users_of_its_organization(ports: Ports) -> None:
    ports.has(a_user(role=Role.ADMIN))
    ports.state.keys[KEY] = a_key(platform=True)
    begun = await ports.begin(replace(COMMAND, principal=replace(a_principal(), key_id=KEY, platform=True)))
    principal, _ = await ports.as_others.of_token(begun.token)
    assert (principal.role, principal.platform) == (Role.ADMIN, False)


@pytest.mark.parametrize(
    "principal",
    [a_person(Role.OPERATOR, id=UserId("usr_bob")), replace(a_principal(), key_id=KEY), a_stranger()],
    ids=["a user without the grant", "an admin key", "another organization"],
)
async def test_without_the_grant_no_caller_acts_as_a_user(ports: Ports, principal: Principal) -> None:
    ports.state.keys[KEY] = a_key()
    ports.has(a_user(UserId("usr_bob"), subject="bob", role=Role.ADMIN))
    with refused("impersonation_refused"):
        await ports.begin(replace(COMMAND, principal=principal))
    assert ports.state.impersonations == {}


@pytest.mark.parametrize(
    ("user", "code"),
    [
        (a_user(role=Role.ADMIN), "impersonation_refused"),
        (a_user(status=UserStatus.DEACTIVATED), "user_not_found"),
        (a_user(UserId("usr_elsewhere")), "user_not_found"),
    ],
    ids=["higher role", "deactivated", "unknown"],
)
async def test_no_caller_acts_as_a_user_with_more_rights_or_without_access(ports: Ports, user: User, code: str) -> None:
    del ports.state.users[USER]
    ports.has(user)
    with refused(code):
        await ports.begin()


async def test_a_token_that_gives_less_than_the_stored_role_begins_no_impersonation_of_a_user_with_more(
    ports: Ports,
) -> None:
    with refused("impersonation_refused"):
        await ports.begin(replace(COMMAND, principal=a_person(Role.RUNNER, id=SUPPORT)))
    assert ports.state.impersonations == {}


async def test_the_rate_limit_of_a_platform_key_bounds_what_it_does_as_others(ports: Ports) -> None:
    ports.state.keys[KEY] = replace(a_key(platform=True), rate_limit=RateLimit(calls=1, per_s=60))
    begun = await ports.begin(replace(COMMAND, principal=replace(a_principal(), key_id=KEY, platform=True)))
    await ports.as_others.of_token(begun.token)
    with refused("rate_limited"):
        await ports.as_others.of_token(begun.token)


async def test_permissions_of_custom_roles_are_compared_one_by_one(ports: Ports) -> None:
    role = CustomRole(
        organization_id=ORG,
        name="night-shift",
        permissions=(Permission.RUNS_START, Permission.APPROVALS_DECIDE),
        created_at=START,
        changed_at=START,
    )
    ports.state.custom_roles[ORG, role.name] = role
    ports.has(replace(a_user(role=Role.VIEWER), custom_role=role.name))
    begun = await ports.begin()
    principal, _ = await ports.as_others.of_token(begun.token)
    assert principal.permissions == {Permission.RUNS_START, Permission.APPROVALS_DECIDE}
    beyond = replace(role, permissions=(*role.permissions, Permission.AGENTS_MANAGE))
    ports.state.custom_roles[ORG, role.name] = beyond
    with refused("token_invalid"):
        await ports.as_others.of_token(begun.token)
    with refused("impersonation_refused"):
        await ports.begin()


async def test_no_user_acts_as_themselves(ports: Ports) -> None:
    with refused("impersonation_refused"):
        await ports.begin(replace(COMMAND, user_id=SUPPORT))


async def test_an_impersonation_begins_no_other_one(ports: Ports) -> None:
    principal, _ = await ports.as_others.of_token((await ports.begin()).token)
    bob = replace(a_user(UserId("usr_bob"), subject="bob"), may_impersonate=True)
    ports.has(bob)
    with refused("impersonation_refused"):
        await ports.begin(replace(COMMAND, principal=principal, user_id=bob.id))


@pytest.mark.parametrize(
    "wrong",
    [{"reason": " \n"}, {"reason": "x" * (MAX_REASON + 1)}, {"minutes": 0}, {"minutes": MAX_MINUTES + 1}],
    ids=["no reason", "long reason", "no time", "long time"],
)
async def test_a_reason_and_at_most_an_hour_are_required(ports: Ports, wrong: dict[str, object]) -> None:
    with refused("impersonation_invalid"):
        await ports.begin(replace(COMMAND, **wrong))  # type: ignore[arg-type]


async def test_the_token_is_refused_when_the_time_is_over_or_it_was_ended(ports: Ports) -> None:
    begun = await ports.begin()
    ports.clock.advance(599)
    await ports.as_others.of_token(begun.token)
    ports.clock.advance(1)
    for token in (begun.token, "dgi_unknown"):
        with refused("token_invalid"):
            await ports.as_others.of_token(token)
    again = await ports.begin()
    ended = replace(again.impersonation, ended_at=START)
    ports.state.impersonations[ended.id] = ended
    with refused("token_invalid"):
        await ports.as_others.of_token(again.token)


@pytest.mark.parametrize(
    "changed",
    [
        replace(SUPPORTER, may_impersonate=False),
        replace(SUPPORTER, status=UserStatus.DEACTIVATED),
        replace(SUPPORTER, role=Role.RUNNER),
        a_user(role=Role.ADMIN),
        a_user(status=UserStatus.REMOVED),
    ],
    ids=["grant taken back", "actor deactivated", "actor demoted", "user promoted", "user removed"],
)
async def test_an_impersonation_is_over_as_soon_as_it_could_not_begin_any_more(ports: Ports, changed: User) -> None:
    begun = await ports.begin()
    ports.has(changed)
    with refused("token_invalid"):
        await ports.as_others.of_token(begun.token)
    with refused("token_invalid"):
        await ports.as_others.require(ORG, begun.impersonation.id)


async def test_a_revoked_or_expired_platform_key_acts_no_longer(ports: Ports) -> None:
    ports.state.keys[KEY] = a_key(platform=True)
    caller = replace(a_principal(), key_id=ApiKeyId(KEY), platform=True)
    begun = await ports.begin(replace(COMMAND, principal=caller))
    for key in (replace(a_key(platform=True), revoked_at=START), replace(a_key(platform=True), expires_at=START)):
        ports.state.keys[KEY] = key
        with refused("token_invalid"):
            await ports.as_others.of_token(begun.token)


@pytest.mark.requirement("P2")
async def test_what_a_user_does_as_others_is_within_their_own_rate_limit(ports: Ports) -> None:
    once = UserLimits(rate_limit=RateLimit(calls=1, per_s=60))
    ports.state.organizations[ORG] = replace(an_organization(), limits_of_users={SUPPORT: once})
    begun = await ports.begin()
    await ports.as_others.of_token(begun.token)
    with refused("rate_limited"):
        await ports.as_others.of_token(begun.token)
