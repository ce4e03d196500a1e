"""CreateApiKey: who may create which keys, what is stored of them, and what is audited."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture

from application.identity.assignable_roles import AssignableRoles
from application.identity.create_api_key import CreateApiKey, CreateApiKeyCommand, CreatedApiKey
from application.identity.ports import IdentityStore
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.rate_limit import RateLimit
from tests.builders import ORG, START, after
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import USER, a_user
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

PLATFORM = replace(a_principal(), platform=True)


@pytest.fixture
def state() -> InMemoryState:
    return InMemoryState()


async def create(identities: IdentityStore, roles: InMemoryState | None = None, **command: Any) -> CreatedApiKey:
    """Create a runner's key, unless `command` says otherwise."""
    assignable = AssignableRoles(custom_roles=InMemoryCustomRoleStore(roles or InMemoryState()))
    creating = CreateApiKey(identities=identities, assignable=assignable, clock=FixedClock(), ids=SequentialIds())
    defaults: dict[str, Any] = {"principal": a_principal(), "name": "ci", "role": Role.RUNNER}
    return await creating.execute(CreateApiKeyCommand(**(defaults | command)))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_an_admin_creates_keys_of_every_role_for_its_own_organization(state: InMemoryState, role: Role) -> None:
    created = await create(InMemoryIdentityStore(state), role=role)

    key = state.keys[created.key.id]
    assert (key.organization_id, key.role, key.platform, key.created_at) == (ORG, role, False, START)


@pytest.mark.requirement("C6")
async def test_only_a_hash_of_the_token_is_stored_and_no_repr_shows_the_token(state: InMemoryState) -> None:
    created = await create(InMemoryIdentityStore(state))

    assert created.key.token_hash == hash_token(created.token)
    assert created.token not in repr(state.keys)
    assert created.token not in repr(created)


@pytest.mark.requirement("C5", "C6")
@pytest.mark.parametrize("platform", [False, True])
async def test_a_new_key_is_audited_without_its_token(state: InMemoryState, platform: bool) -> None:
    created = await create(InMemoryIdentityStore(state), principal=PLATFORM, role=Role.ADMIN, platform=platform)

    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.KEY_CREATED, "key_admin", created.key.id)
    assert entry.details == {"name": "ci", "role": "admin"} | ({"platform": True} if platform else {})


async def test_a_key_may_have_an_end_and_a_rate_limit_of_its_own(state: InMemoryState) -> None:
    limit = RateLimit(calls=5, per_s=1)

    created = await create(InMemoryIdentityStore(state), expires_at=after(1), rate_limit=limit)

    assert (created.key.expires_at, created.key.rate_limit) == (after(1), limit)


@pytest.mark.requirement("C6")
async def test_a_platform_key_is_created_with_a_platform_key_only(state: InMemoryState) -> None:
    identities = InMemoryIdentityStore(state)

    with refused("platform_key_required"):
        await create(identities, role=Role.ADMIN, platform=True)
    assert not state.keys

    assert (await create(identities, principal=PLATFORM, role=Role.ADMIN, platform=True)).key.platform


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": " "}, "name"),
        ({"expires_at": START}, "expires_at"),
        ({"principal": PLATFORM, "platform": True}, "role"),
    ],
    ids=["no name", "an end that is past", "a platform key that is no admin"],
)
async def test_an_invalid_key_is_not_created(state: InMemoryState, wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(ServiceError) as caught:
        await create(InMemoryIdentityStore(state), **wrong)

    assert (caught.value.code, caught.value.kind) == ("api_key_invalid", ErrorKind.INVALID)
    assert [fault.path for fault in caught.value.violations] == [path]
    assert not state.keys
    assert not state.audit


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_creates_keys(mocker: MockerFixture, role: Role) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)

    with refused("role_insufficient"):
        await create(identities, principal=a_principal(role))

    identities.add_key.assert_not_awaited()


async def test_no_token_is_given_for_a_key_that_cannot_be_stored(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    identities.add_key.side_effect = storage_away()

    with refused("storage_unavailable"):
        await create(identities)


@pytest.mark.requirement("P2")
async def test_a_key_names_the_person_who_created_it_directly_or_with_another_key(state: InMemoryState) -> None:
    identities = InMemoryIdentityStore(state)
    ann = a_user(role=Role.ADMIN).principal(START)
    with_key = replace(a_principal(), key_of=USER)
    for principal in (ann, with_key):
        assert (await create(identities, principal=principal)).key.person_id == USER
    assert (await create(identities)).key.person_id is None
