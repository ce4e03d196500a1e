"""The contract of `ClientGrantStore`, and of sessions that people granted to clients."""

from dataclasses import replace

import pytest

from application.gateway.authorization.ports import StoredGrant
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import invalid
from domain.gateway.client_grant import ClientGrant
from domain.gateway.session import GatewaySession
from domain.identity.api_key import hash_token
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, GatewaySessionId
from tests.builders import KEY, ORG, OTHER_ORG, START, a_key, after, an_audit_event
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD
from tests.gateway_builders import CLIENT, CODE, a_client_grant, a_gateway_session
from tests.people_builders import PROVIDER, USER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.roles.roles import SUPPORT

pytestmark = pytest.mark.requirement("P5")

SESSION = a_gateway_session(
    thread_id=OWN_THREAD.id, client_id=CLIENT, created_by=ApiKeyId(USER), token_expires_at=START
)
GRANT = a_client_grant(SESSION.id)
CREATED = an_audit_event(1, action=AuditAction.GATEWAY_SESSION_CREATED)


async def a_stored_grant(stores: Stores) -> None:
    """Of an active user of a provider."""
    await stores.identity_providers.add(a_provider(), an_audit_event(2))
    await stores.user_access.add(a_user(), an_audit_event(3))
    await stores.client_grants.add(GRANT, SESSION, CREATED, thread=OWN_THREAD)


def redeemed(grant: ClientGrant, session: GatewaySession) -> StoredGrant:
    renewed = grant.renewed(family_hash=hash_token("family"), refresh_hash=hash_token("rest"), at=after(5))
    return renewed, replace(session, token_hash="new", token_expires_at=after(3_600), expires_at=after(9_000))


async def test_a_grant_is_found_by_its_code_and_comes_back_as_it_was_stored(stores: Stores) -> None:
    await a_stored_grant(stores)
    assert await stores.client_grants.of_code(hash_token(CODE)) == (GRANT, SESSION)
    assert await stores.client_grants.of_token("hash") == (GRANT, SESSION)
    assert await stores.client_grants.of_code("other") is None
    assert await stores.client_grants.of_family("other") is None
    assert await stores.client_grants.of_token("other") is None
    assert await stores.client_grants.is_known(hash_token(CLIENT))
    assert not await stores.client_grants.is_known("other")


async def test_a_change_renews_the_tokens_of_the_session_and_nothing_else(stores: Stores) -> None:
    await a_stored_grant(stores)
    assert await stores.client_grants.change(ORG, SESSION.id, redeemed)
    found = await stores.client_grants.of_family(hash_token("family"))
    assert found == redeemed(GRANT, SESSION)
    assert await stores.gateway_sessions.by_token_hash("new") == found[1]
    assert await stores.gateway_sessions.by_token_hash("hash") is None


async def test_what_the_decision_raises_changes_nothing(stores: Stores) -> None:
    await a_stored_grant(stores)

    def refuse(grant: ClientGrant, session: GatewaySession) -> StoredGrant:
        raise invalid("invalid_grant", "No.")

    with refused("invalid_grant"):
        await stores.client_grants.change(ORG, SESSION.id, refuse)
    assert await stores.client_grants.of_code(hash_token(CODE)) == (GRANT, SESSION)
    assert not await stores.client_grants.change(OTHER_ORG, SESSION.id, redeemed)
    assert not await stores.client_grants.change(ORG, GatewaySessionId("gws_none"), redeemed)


async def test_a_change_of_tokens_does_not_open_a_revoked_session_again(stores: Stores) -> None:
    await a_stored_grant(stores)
    assert await stores.gateway_sessions.revoke(ORG, SESSION.id, an_audit_event(4, at=after(1)))
    assert await stores.client_grants.change(ORG, SESSION.id, redeemed)
    session = await stores.gateway_sessions.by_token_hash("new")
    assert session is not None
    assert session.revoked_at == after(1)


async def test_the_token_of_a_client_finds_nothing_once_its_person_is_refused(stores: Stores) -> None:
    await a_stored_grant(stores)
    assert await stores.gateway_sessions.by_token_hash("hash") == SESSION
    ended = an_audit_event(5, action=AuditAction.USER_UPDATED)

    def deactivated(user: User) -> tuple[User, AuditEvent]:
        return replace(user, status=UserStatus.DEACTIVATED), ended

    def activated(user: User) -> tuple[User, AuditEvent]:
        return replace(user, status=UserStatus.ACTIVE), replace(ended, id=an_audit_event(6).id)

    await stores.users.change(ORG, USER, deactivated)
    assert await stores.gateway_sessions.by_token_hash("hash") is None
    await stores.users.change(ORG, USER, activated)
    assert await stores.gateway_sessions.by_token_hash("hash") == SESSION

    def with_role(role: Role, number: int) -> tuple[User, AuditEvent]:
        return a_user(role=role), replace(ended, id=an_audit_event(number).id)

    await stores.users.change(ORG, USER, lambda _: with_role(Role.VIEWER, 8))
    assert await stores.gateway_sessions.by_token_hash("hash") is None
    await stores.users.change(ORG, USER, lambda _: with_role(Role.RUNNER, 9))
    assert await stores.gateway_sessions.by_token_hash("hash") == SESSION
    for number, permissions in enumerate(((), (Permission.RUNS_START,)), start=10):
        role = replace(SUPPORT, name=f"role-{number}", permissions=permissions)
        await stores.custom_roles.add(role, an_audit_event(number + 10))
        holder = a_user(role=Role.VIEWER, custom_role=role.name), replace(ended, id=an_audit_event(number).id)
        await stores.users.change(ORG, USER, lambda _, holder=holder: holder)  # type: ignore[misc]
        assert await stores.gateway_sessions.by_token_hash("hash") == (SESSION if permissions else None)
    await stores.identity_providers.delete(ORG, PROVIDER, an_audit_event(7))
    assert await stores.gateway_sessions.by_token_hash("hash") is None


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("opener", [USER, KEY])
async def test_a_session_is_found_while_the_role_of_who_opened_it_may_open_sessions(
    stores: Stores, opener: str
) -> None:
    role = replace(SUPPORT, permissions=(Permission.RUNS_START, Permission.GATEWAY_OPEN))
    await stores.custom_roles.add(role, an_audit_event(2))
    await stores.identity_providers.add(a_provider(), an_audit_event(3))
    await stores.user_access.add(a_user(role=Role.VIEWER, custom_role=role.name), an_audit_event(4))
    await stores.identity.add_key(a_key(role=Role.VIEWER, custom_role=role.name), an_audit_event(5))
    own = replace(SESSION, client_id=None, client_name=None, token_expires_at=None, created_by=ApiKeyId(opener))
    await stores.gateway_sessions.add(own, CREATED, thread=OWN_THREAD)
    assert await stores.gateway_sessions.by_token_hash("hash") == own
    lesser = replace(role, permissions=(Permission.RUNS_START,), version=2)
    await stores.custom_roles.change(ORG, role.name, lambda _: (lesser, an_audit_event(6)))
    assert await stores.gateway_sessions.by_token_hash("hash") is None


async def test_sessions_are_listed_by_who_opened_them(stores: Stores) -> None:
    await a_stored_grant(stores)
    page = await stores.gateway_sessions.page(ORG, PageRequest(limit=10), created_by=ApiKeyId(USER))
    assert page.items == (SESSION,)
    assert (await stores.gateway_sessions.page(ORG, PageRequest(limit=10), created_by=KEY)).items == ()
