"""API keys: first start, authentication, creation, revocation."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.bootstrap_identity import BootstrapIdentity
from application.identity.create_api_key import CreateApiKey, CreateApiKeyCommand
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.identity.list_api_keys import ListApiKeys, ListApiKeysCommand
from application.identity.ports import IdentityStore
from application.identity.revoke_api_key import RevokeApiKey, RevokeApiKeyCommand
from application.identity.token_cache import TokenCache, known_key
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import ApiKey, hash_token
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from infrastructure.home import Home
from tests.builders import ORG, OTHER_ORG, a_key, after
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.unit.application.actors import a_principal, a_stranger

TOKEN = "dgm_secret"


class Keys:
    """The identity slice over in-memory tables, and a HOME in a folder."""

    def __init__(self, folder: Path, *, every: RateLimit | None = None) -> None:
        self.home = Home(folder)
        self.state = InMemoryState()
        self.store = InMemoryIdentityStore(self.state)
        self.cache = TokenCache(capacity=2)
        self.clock = clock = FixedClock()
        ids = SequentialIds()
        self.uses = KeyUses(identities=self.store)
        self.authenticate = Authenticate(
            identities=self.store,
            cache=self.cache,
            limits=KeyLimits(every=every, clock=clock),
            uses=self.uses,
            clock=clock,
        )
        self.bootstrap = BootstrapIdentity(identities=self.store, first_key=self.home, clock=clock, ids=ids)
        self.create = CreateApiKey(identities=self.store, clock=clock, ids=ids)
        self.list = ListApiKeys(identities=self.store, uses=self.uses)
        self.revoke = RevokeApiKey(identities=self.store, cache=self.cache, clock=clock, ids=ids)

    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]


def authenticating(identities: IdentityStore, cache: TokenCache) -> Authenticate:
    clock = FixedClock()
    limits = KeyLimits(every=None, clock=clock)
    return Authenticate(
        identities=identities, cache=cache, limits=limits, uses=KeyUses(identities=identities), clock=clock
    )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.mark.requirement("C6")
async def test_the_first_start_makes_the_default_organization_and_a_platform_admin_key(keys: Keys) -> None:
    made = await keys.bootstrap.execute()
    assert made is not None
    assert made.organization.name == "default"
    principal = await keys.authenticate.execute(AuthenticateCommand(token=made.token))
    assert (principal.organization_id, principal.role, principal.platform) == (made.organization.id, Role.ADMIN, True)


async def test_a_later_start_makes_nothing(keys: Keys) -> None:
    made = await keys.bootstrap.execute()
    assert made is not None
    before = dict(keys.state.keys)
    assert await keys.bootstrap.execute() is None
    assert keys.state.keys == before
    assert keys.home.read_admin_key() == made.token
    assert [path.name for path in keys.home.path.iterdir()] == ["admin.key"]


async def test_a_deleted_first_key_is_not_replaced(keys: Keys) -> None:
    await keys.bootstrap.execute()
    keys.home.admin_key_path.unlink()
    assert await keys.bootstrap.execute() is None
    assert keys.home.read_admin_key() is None
    assert list(keys.home.path.iterdir()) == []


async def test_a_start_that_died_before_its_key_was_stored_locks_nobody_out(keys: Keys, mocker: MockerFixture) -> None:
    died = mocker.patch.object(keys.store, "bootstrap", side_effect=RuntimeError)
    with pytest.raises(RuntimeError):
        await keys.bootstrap.execute()
    mocker.stop(died)
    made = await keys.bootstrap.execute()
    assert made is not None
    assert keys.home.read_admin_key() == made.token


async def test_a_start_that_died_before_its_key_was_kept_locks_nobody_out(keys: Keys, mocker: MockerFixture) -> None:
    died = mocker.patch.object(keys.home, "keep", side_effect=RuntimeError)
    with pytest.raises(RuntimeError):
        await keys.bootstrap.execute()
    mocker.stop(died)
    assert keys.home.read_admin_key() is None
    assert await keys.bootstrap.execute() is None
    token = keys.home.read_admin_key()
    assert token is not None
    assert (await keys.authenticate.execute(AuthenticateCommand(token=token))).platform


async def test_a_key_that_cannot_be_kept_is_one_sentence_and_nothing_is_stored(keys: Keys) -> None:
    (keys.home.path / "admin.key.new").mkdir()
    with pytest.raises(ServiceError) as caught:
        await keys.bootstrap.execute()
    assert caught.value.code == "home_unusable"
    assert keys.state.organizations == {}


@pytest.mark.requirement("C6")
async def test_only_a_hash_of_a_token_is_stored_and_no_repr_shows_it(keys: Keys) -> None:
    created = await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER))
    assert created.key.token_hash == hash_token(created.token)
    assert created.token not in repr(keys.state.keys)
    assert created.token not in repr(created)
    assert created.token not in repr(AuthenticateCommand(token=created.token))


async def test_a_created_key_acts_with_its_role_in_the_organization_of_its_maker(keys: Keys) -> None:
    created = await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER))
    principal = await keys.authenticate.execute(AuthenticateCommand(token=created.token))
    assert (principal.organization_id, principal.role, principal.platform) == (ORG, Role.RUNNER, False)
    assert keys.actions() == [AuditAction.KEY_CREATED]


async def test_a_key_needs_a_name(keys: Keys) -> None:
    with pytest.raises(ServiceError) as refused:
        await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name=" ", role=Role.RUNNER))
    assert refused.value.code == "api_key_invalid"
    assert keys.state.keys == {}


@pytest.mark.parametrize("token", ["dgm_unknown", "", "Bearer", "secret", "DGM_secret"])
async def test_an_unknown_token_is_refused(keys: Keys, token: str) -> None:
    keys.state.keys[ApiKeyId("key_1")] = a_key(token=TOKEN)
    with pytest.raises(ServiceError) as refused:
        await keys.authenticate.execute(AuthenticateCommand(token=token))
    assert refused.value.kind is ErrorKind.UNAUTHENTICATED


@pytest.mark.requirement("C6")
async def test_a_revoked_key_is_refused_at_once_even_if_it_was_just_used(keys: Keys) -> None:
    created = await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER))
    await keys.authenticate.execute(AuthenticateCommand(token=created.token))
    await keys.revoke.execute(RevokeApiKeyCommand(principal=a_principal(), key_id=created.key.id))
    with pytest.raises(ServiceError) as refused:
        await keys.authenticate.execute(AuthenticateCommand(token=created.token))
    assert refused.value.kind is ErrorKind.UNAUTHENTICATED
    assert keys.actions() == [AuditAction.KEY_CREATED, AuditAction.KEY_REVOKED]


@pytest.mark.requirement("C6")
async def test_a_look_up_that_a_revocation_overtakes_is_not_remembered(mocker: MockerFixture) -> None:
    cache = TokenCache(capacity=2)
    key = a_key(token=TOKEN)
    identities = mocker.create_autospec(IdentityStore, instance=True)

    async def revoked_meanwhile(token_hash: str) -> ApiKey:
        cache.forget(key.id)
        return key

    identities.key_by_hash.side_effect = revoked_meanwhile
    await authenticating(identities, cache).execute(AuthenticateCommand(token=TOKEN))
    assert cache.get(hash_token(TOKEN)) is None


async def test_a_key_seen_before_is_not_read_again(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.key_by_hash.return_value = a_key(token=TOKEN)
    authenticate = authenticating(identities, TokenCache(capacity=2))
    first = await authenticate.execute(AuthenticateCommand(token=TOKEN))
    assert await authenticate.execute(AuthenticateCommand(token=TOKEN)) == first
    identities.key_by_hash.assert_awaited_once()


async def test_the_cache_is_bounded_and_drops_what_was_used_longest_ago() -> None:
    cache = TokenCache(capacity=2)
    for name in ("a", "b"):
        cache.put(name, known_key(a_key()), generation=0)
    cache.get("a")
    cache.put("c", known_key(a_key()), generation=0)
    assert [cache.get(name) is not None for name in ("a", "b", "c")] == [True, False, True]


@pytest.mark.requirement("C6")
async def test_nothing_is_known_while_a_revocation_elsewhere_would_not_be_heard_of() -> None:
    fresh = [True]
    cache, key = TokenCache(capacity=2, fresh=lambda: fresh[0]), a_key()
    cache.put("a", known_key(key), generation=0)
    assert cache.get("a") == cache.of_key(key.id) == known_key(key)
    fresh[0] = False
    assert (cache.get("a"), cache.of_key(key.id)) == (None, None)


@pytest.mark.requirement("C6")
async def test_what_changes_elsewhere_is_forgotten_with_what_is_being_looked_up() -> None:
    cache = TokenCache(capacity=4)
    keys = {name: a_key(ApiKeyId(name), organization_id=of) for name, of in (("a", ORG), ("b", OTHER_ORG))}
    for name, key in keys.items():
        cache.put(name, known_key(key), generation=0)
    cache.forget_organization(ORG)
    assert (cache.get("a"), cache.of_key(keys["a"].id)) == (None, None)
    assert cache.get("b") == known_key(keys["b"])
    cache.put("c", known_key(a_key()), generation=0)
    assert cache.get("c") is None
    cache.forget_organization(None)
    assert cache.get("b") is None


async def test_a_cache_without_capacity_remembers_nothing() -> None:
    cache = TokenCache(capacity=0)
    cache.put("a", known_key(a_key()), generation=0)
    assert cache.get("a") is None


async def test_a_key_cannot_revoke_itself(keys: Keys) -> None:
    admin = a_principal()
    with pytest.raises(ServiceError) as refused:
        await keys.revoke.execute(RevokeApiKeyCommand(principal=admin, key_id=admin.key_id))
    assert refused.value.code == "api_key_in_use"


@pytest.mark.requirement("C6")
async def test_a_key_of_another_organization_is_neither_seen_nor_revoked(keys: Keys) -> None:
    created = await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER))
    with pytest.raises(ServiceError) as refused:
        await keys.revoke.execute(RevokeApiKeyCommand(principal=a_stranger(), key_id=created.key.id))
    assert refused.value.code == "api_key_not_found"
    assert (await keys.list.execute(ListApiKeysCommand(principal=a_stranger()))).items == ()
    await keys.authenticate.execute(AuthenticateCommand(token=created.token))


async def test_a_key_is_revoked_once(keys: Keys) -> None:
    created = await keys.create.execute(CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER))
    command = RevokeApiKeyCommand(principal=a_principal(), key_id=created.key.id)
    await keys.revoke.execute(command)
    with pytest.raises(ServiceError) as refused:
        await keys.revoke.execute(command)
    assert refused.value.code == "api_key_not_found"
    listed = await keys.list.execute(ListApiKeysCommand(principal=a_principal()))
    assert [key.revoked_at is not None for key in listed.items] == [True]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_keys_are_managed_by_admins_only(keys: Keys, role: Role) -> None:
    principal = a_principal(role)
    for attempt in (
        keys.create.execute(CreateApiKeyCommand(principal=principal, name="ci", role=Role.ADMIN)),
        keys.list.execute(ListApiKeysCommand(principal=principal)),
        keys.revoke.execute(RevokeApiKeyCommand(principal=principal, key_id=ApiKeyId("key_1"))),
    ):
        with pytest.raises(ServiceError) as refused:
            await attempt
        assert refused.value.kind is ErrorKind.FORBIDDEN
    assert keys.state.keys == {}


@pytest.mark.requirement("C6")
async def test_a_key_is_refused_from_the_moment_it_expires_even_if_it_is_remembered(keys: Keys) -> None:
    end = keys.clock.now() + timedelta(hours=1)
    command = CreateApiKeyCommand(principal=a_principal(), name="ci", role=Role.RUNNER, expires_at=end)
    token = AuthenticateCommand(token=(await keys.create.execute(command)).token)
    keys.clock.advance(3599)
    await keys.authenticate.execute(token)
    keys.clock.advance(1)
    with pytest.raises(ServiceError) as refused:
        await keys.authenticate.execute(token)
    assert refused.value.code == "token_invalid"


async def test_a_key_that_has_expired_already_is_not_made(keys: Keys) -> None:
    command = CreateApiKeyCommand(
        principal=a_principal(), name="ci", role=Role.RUNNER, expires_at=keys.clock.now(), platform=False
    )
    with pytest.raises(ServiceError) as refused:
        await keys.create.execute(command)
    assert [fault.path for fault in refused.value.violations] == ["expires_at"]
    assert keys.state.keys == {}


@pytest.mark.requirement("C6")
async def test_the_last_use_of_a_key_is_listed_and_reading_it_later_finds_it_stored(keys: Keys) -> None:
    key = a_key(token=TOKEN)
    keys.state.keys[key.id] = key
    keys.clock.advance(60)
    await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))
    assert keys.state.keys[key.id].last_used_at is None
    listed = await keys.list.execute(ListApiKeysCommand(principal=a_principal()))
    assert [one.last_used_at for one in listed.items] == [after(60)]
    assert keys.state.keys[key.id].last_used_at == after(60)


async def test_uses_that_could_not_be_stored_stay_noted_unless_later_ones_came(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    uses = KeyUses(identities=identities)
    early, late = ApiKeyId("key_early"), ApiKeyId("key_late")
    uses.note(early, after(1))
    uses.note(late, after(1))

    async def fails_while_a_key_is_used(_: object) -> None:
        uses.note(late, after(2))
        raise RuntimeError

    identities.record_uses.side_effect = fails_while_a_key_is_used
    await uses.settle()
    identities.record_uses.side_effect = None
    await uses.settle()
    identities.record_uses.assert_awaited_with({early: after(1), late: after(2)})


@pytest.mark.requirement("C6")
async def test_a_key_that_is_used_too_often_is_told_how_long_to_wait(tmp_path: Path) -> None:
    keys = Keys(tmp_path, every=RateLimit(calls=2, per_s=10))
    other = a_key(ApiKeyId("key_other"), token="dgm_other")
    keys.state.keys = {key.id: key for key in (a_key(token=TOKEN), other)}
    for _ in range(2):
        await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))
    with pytest.raises(ServiceError) as refused:
        await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))
    assert (refused.value.kind, refused.value.code) == (ErrorKind.LIMIT, "rate_limited")
    assert refused.value.extra == {"retry_after_s": "5"}
    await keys.authenticate.execute(AuthenticateCommand(token="dgm_other"))
    keys.clock.advance(5)
    await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))


@pytest.mark.parametrize("own", [RateLimit(calls=1, per_s=10), RateLimit(calls=100, per_s=1)])
async def test_a_keys_own_limit_holds_beside_the_services(tmp_path: Path, own: RateLimit) -> None:
    keys = Keys(tmp_path, every=RateLimit(calls=2, per_s=10))
    key = replace(a_key(token=TOKEN), rate_limit=own)
    keys.state.keys[key.id] = key
    for _ in range(min(own.calls, 2)):
        await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))
    with pytest.raises(ServiceError) as refused:
        await keys.authenticate.execute(AuthenticateCommand(token=TOKEN))
    assert refused.value.code == "rate_limited"


def test_the_counting_of_keys_is_bounded() -> None:
    limits = KeyLimits(every=RateLimit(calls=1, per_s=3600), clock=FixedClock(), capacity=2)
    for number in range(5):
        limits.take(ApiKeyId(f"key_{number}"), None)
    limits.take(ApiKeyId("key_0"), None)
    with pytest.raises(ServiceError):
        limits.take(ApiKeyId("key_4"), None)


@pytest.mark.requirement("C6")
async def test_platform_keys_are_made_and_revoked_with_platform_keys_only(keys: Keys) -> None:
    platform = replace(a_principal(), platform=True)
    command = CreateApiKeyCommand(principal=a_principal(), name="ops", role=Role.ADMIN, platform=True)
    with pytest.raises(ServiceError) as refused:
        await keys.create.execute(command)
    assert refused.value.code == "platform_key_required"
    created = await keys.create.execute(replace(command, principal=platform))
    assert (await keys.authenticate.execute(AuthenticateCommand(token=created.token))).platform
    with pytest.raises(ServiceError) as refused:
        await keys.revoke.execute(RevokeApiKeyCommand(principal=a_principal(), key_id=created.key.id))
    assert refused.value.code == "platform_key_required"
    await keys.revoke.execute(RevokeApiKeyCommand(principal=platform, key_id=created.key.id))


async def test_a_platform_key_is_an_admins(keys: Keys) -> None:
    command = CreateApiKeyCommand(
        principal=replace(a_principal(), platform=True), name="ops", role=Role.RUNNER, platform=True
    )
    with pytest.raises(ServiceError) as refused:
        await keys.create.execute(command)
    assert [fault.path for fault in refused.value.violations] == ["role"]
