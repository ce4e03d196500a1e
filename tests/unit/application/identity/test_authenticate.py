"""Authenticate: which tokens stand for a key, how soon a revocation holds, and how often a key may
be used."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.authenticate_person import AuthenticatePerson, AuthenticatePersonCommand, invalid_token
from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore
from application.identity.token_cache import TokenCache
from application.system.rates import LocalRates
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import ApiKey, Principal, hash_token
from domain.identity.role import Role
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from tests.builders import KEY, ORG, START, a_key, after, an_organization
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import USER, a_person, an_impersonation
from tests.refusals import refused, storage_away
from tests.unit.application.team_ports import caller_teams

TOKEN = "dgm_secret"
STORED = a_key(token=TOKEN, role=Role.RUNNER)


class Ports:
    """A store that knows one key; nothing is cached or noted yet, and the service limits no key."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.keys = {STORED.token_hash: STORED}
        self.identities: MockType = mocker.create_autospec(IdentityStore, instance=True)
        self.identities.key_by_hash.side_effect = self._key_by_hash
        self.uses: MockType = mocker.create_autospec(KeyUses, instance=True)
        self.people: MockType = mocker.create_autospec(AuthenticatePerson, instance=True)
        self.people.execute.side_effect = invalid_token()
        self.state = InMemoryState()
        self.as_others: MockType = mocker.create_autospec(Impersonations, instance=True)
        self.cache = TokenCache(capacity=2)
        self.clock = FixedClock()
        self.limit(None)

    def limit(self, every: RateLimit | None) -> None:
        """Limit every key, as the operator does."""
        self.authenticate = Authenticate(
            identities=self.identities,
            custom_roles=InMemoryCustomRoleStore(self.state),
            cache=self.cache,
            limits=KeyLimits(
                every=every,
                rates=LocalRates(clock=self.clock),
                organizations=InMemoryOrganizationStore(self.state),
            ),
            uses=self.uses,
            people=self.people,
            impersonations=self.as_others,
            caller_teams=caller_teams(self.state),
            clock=self.clock,
        )

    def has(self, key: ApiKey) -> None:
        """Store the key."""
        self.keys[key.token_hash] = key

    async def principal_of(self, token: str = TOKEN) -> Principal:
        return await self.authenticate.execute(AuthenticateCommand(token=token))

    async def _key_by_hash(self, token_hash: str) -> ApiKey | None:
        return self.keys.get(token_hash)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("platform", [False, True])
async def test_a_known_token_stands_for_the_organization_and_the_role_of_its_key(ports: Ports, platform: bool) -> None:
    ports.has(replace(STORED, platform=platform))

    wanted = Principal(organization_id=ORG, key_id=KEY, role=Role.RUNNER, platform=platform, teams=None)
    assert await ports.principal_of() == wanted


@pytest.mark.requirement("C6")
async def test_the_store_is_asked_for_the_hash_of_a_token_and_no_repr_shows_the_token(ports: Ports) -> None:
    await ports.principal_of()

    ports.identities.key_by_hash.assert_awaited_once_with(hash_token(TOKEN))
    assert TOKEN not in repr(AuthenticateCommand(token=TOKEN))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "stored",
    [
        None,
        replace(STORED, revoked_at=START),
        replace(STORED, expires_at=START),
    ],
    ids=["unknown", "revoked", "expired"],
)
async def test_unknown_revoked_and_expired_tokens_are_refused_in_the_same_words(
    ports: Ports, stored: ApiKey | None
) -> None:
    ports.keys = {} if stored is None else {stored.token_hash: stored}

    with pytest.raises(ServiceError) as caught:
        await ports.principal_of()

    assert (caught.value.code, caught.value.kind) == ("token_invalid", ErrorKind.UNAUTHENTICATED)
    assert caught.value.detail == "The API key is unknown, expired or revoked."
    ports.uses.note.assert_not_called()


@pytest.mark.parametrize("token", ["", "Bearer", "secret", "DGM_secret"])
async def test_a_malformed_token_is_refused_without_asking_the_store(ports: Ports, token: str) -> None:
    with refused("token_invalid"):
        await ports.principal_of(token)

    ports.identities.key_by_hash.assert_not_awaited()


async def test_a_key_seen_before_is_not_read_again(ports: Ports) -> None:
    first = await ports.principal_of()

    assert await ports.principal_of() == first
    ports.identities.key_by_hash.assert_awaited_once()


@pytest.mark.requirement("C6")
async def test_a_revoked_key_is_refused_at_once_although_it_was_just_used(ports: Ports) -> None:
    await ports.principal_of()
    ports.has(replace(STORED, revoked_at=START))
    ports.cache.forget(KEY)

    with refused("token_invalid"):
        await ports.principal_of()


@pytest.mark.requirement("C6")
async def test_a_look_up_that_a_revocation_overtakes_is_not_remembered(ports: Ports) -> None:
    async def revoked_meanwhile(_: str) -> ApiKey:
        ports.cache.forget(KEY)
        return STORED

    ports.identities.key_by_hash.side_effect = revoked_meanwhile

    await ports.principal_of()

    assert ports.cache.get(hash_token(TOKEN)) is None


@pytest.mark.requirement("C6")
async def test_a_key_is_refused_from_the_moment_it_expires_although_it_is_remembered(ports: Ports) -> None:
    ports.has(replace(STORED, expires_at=after(3600)))
    ports.clock.advance(3599)
    await ports.principal_of()
    ports.clock.advance(1)

    with refused("token_invalid"):
        await ports.principal_of()


@pytest.mark.requirement("C6")
async def test_each_use_of_a_key_is_noted(ports: Ports) -> None:
    await ports.principal_of()
    ports.clock.advance(60)
    await ports.principal_of()

    assert [call.args for call in ports.uses.note.call_args_list] == [(KEY, START), (KEY, after(60))]


@pytest.mark.requirement("C6")
async def test_a_key_that_is_used_too_often_is_told_how_long_to_wait(ports: Ports) -> None:
    ports.limit(RateLimit(calls=2, per_s=10))
    ports.has(a_key(ApiKeyId("key_other"), token="dgm_other"))
    for _ in range(2):
        await ports.principal_of()

    with pytest.raises(ServiceError) as caught:
        await ports.principal_of()

    assert (caught.value.kind, caught.value.code) == (ErrorKind.LIMIT, "rate_limited")
    assert caught.value.extra == {"retry_after_s": "5"}
    assert ports.uses.note.call_count == 2
    await ports.principal_of("dgm_other")
    ports.clock.advance(5)
    await ports.principal_of()


@pytest.mark.parametrize("own", [RateLimit(calls=1, per_s=10), RateLimit(calls=100, per_s=1)])
async def test_the_limit_of_a_key_holds_beside_that_of_the_service(ports: Ports, own: RateLimit) -> None:
    ports.limit(RateLimit(calls=2, per_s=10))
    ports.has(replace(STORED, rate_limit=own))
    for _ in range(min(own.calls, 2)):
        await ports.principal_of()

    with refused("rate_limited"):
        await ports.principal_of()


async def test_a_storage_failure_is_not_taken_for_an_unknown_token(ports: Ports) -> None:
    ports.identities.key_by_hash.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.principal_of()

    assert ports.cache.get(hash_token(TOKEN)) is None
    ports.uses.note.assert_not_called()


@pytest.mark.requirement("P1")
async def test_a_token_without_the_prefix_of_keys_is_a_persons(ports: Ports) -> None:
    bob = Principal(organization_id=ORG, key_id=ApiKeyId("usr_bob"), role=Role.VIEWER, user_until=after(60))
    ports.people.execute.side_effect = None
    ports.people.execute.return_value = bob

    assert await ports.principal_of("eyJ.eyJ.sig") == bob

    ports.people.execute.assert_awaited_once_with(AuthenticatePersonCommand(token="eyJ.eyJ.sig"))
    ports.identities.key_by_hash.assert_not_awaited()
    ports.uses.note.assert_not_called()


@pytest.mark.requirement("P7")
async def test_a_token_of_an_impersonation_is_accepted_only_where_it_is_expected(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    ports.as_others.of_token.return_value = (a_person(), an_impersonation())
    with refused("token_invalid"):
        await ports.principal_of("dgi_1")
    ports.as_others.of_token.assert_not_awaited()
    accepted = await ports.authenticate.execute(AuthenticateCommand(token="dgi_1", impersonation=True))
    assert accepted == a_person()


@pytest.mark.requirement("P2")
async def test_keys_of_a_user_share_the_users_limit_where_the_organization_counts_keys(ports: Ports) -> None:
    ports.has(replace(STORED, person_id=USER))
    limits = UserLimits(rate_limit=RateLimit(calls=1, per_s=60))
    organization = replace(an_organization(), user_limits=limits)
    ports.state.organizations[ORG] = organization
    await ports.principal_of()
    await ports.principal_of()
    ports.state.organizations[ORG] = replace(organization, keys_count_for_users=True)
    await ports.principal_of()
    with refused("rate_limited"):
        await ports.principal_of()
