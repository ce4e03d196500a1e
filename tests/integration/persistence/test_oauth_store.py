"""Grants and pending authorizations, in memory and over real databases."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
from sqlalchemy import Connection, text

from domain.audit.event import AuditAction
from domain.identity.user import UserStatus
from domain.ids import AuditEventId, UserId
from infrastructure.mcp.oauth.grants import (
    CLAIM_LASTS,
    Grant,
    GrantOwner,
    OAuthStore,
    PendingAuthorization,
)
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.user_store import SqlUserStore
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import KEY, ORG, OTHER_ORG, SERVER, START, a_server, after, an_audit_event
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.state import InMemoryState
from tests.mcp_builders import a_grant
from tests.people_builders import a_user

pytestmark = pytest.mark.requirement("B12")

OWNER = GrantOwner(ORG, SERVER)
GRANT = a_grant()
CLIENT = GRANT.client
PENDING = PendingAuthorization(
    organization_id=ORG,
    server_id=SERVER,
    key_id=KEY,
    expires_at=after(600),
    binding="b1",
    issuer="https://auth.example.org",
    issuer_in_answer=True,
    resource="https://mcp.example.org/mcp",
    scope=None,
    token_endpoint="https://auth.example.org/token",
    client=replace(CLIENT, secret=None),
    redirect_uri="https://here/back",
    verifier="verifier-s3cret",
)


async def sql_store(database: Database) -> SqlOAuthStore:
    """Over a database that has the server SERVER of ORG."""
    box = SecretBox(["a key for tests"])
    added = an_audit_event(action=AuditAction.MCP_SERVER_CREATED)
    await SqlMcpServerStore(database=database, box=box).add(a_server(), added)
    return SqlOAuthStore(database=database, box=box)


@pytest.fixture(params=["memory", "sql"])
async def store(request: pytest.FixtureRequest, database: Database) -> OAuthStore:
    """Each adapter, with the server SERVER of ORG."""
    if request.param == "sql":
        return await sql_store(database)
    state = InMemoryState()
    state.servers[SERVER] = a_server()
    return InMemoryOAuthStore(state)


async def test_a_grant_is_read_back_as_it_was_and_replaced_by_the_next_of_its_issuer(store: OAuthStore) -> None:
    bare = replace(GRANT, scope=None, expires_at=None, access_token=None, refresh_token=None)
    await store.save(OWNER, GRANT)
    assert await store.load(OWNER) == (GRANT,)
    await store.save(OWNER, bare)
    assert await store.load(OWNER) == (bare,)


async def test_grants_of_several_issuers_are_kept_newest_first(store: OAuthStore) -> None:
    newer = replace(GRANT, issuer="https://other.example.org", obtained_at=after(2))
    await store.save(OWNER, newer)
    await store.save(OWNER, GRANT)
    assert await store.load(OWNER) == (newer, GRANT)


async def test_nothing_is_kept_for_a_server_that_is_not_stored_or_of_another_organization(store: OAuthStore) -> None:
    assert not await store.save(GrantOwner(OTHER_ORG, SERVER), GRANT)
    assert await store.load(GrantOwner(OTHER_ORG, SERVER)) == ()
    assert await store.load(OWNER) == ()


async def test_a_pending_authorization_is_taken_once_however_many_ask(store: OAuthStore) -> None:
    await store.expect("hash", PENDING, START)
    taken = await asyncio.gather(*(store.take("hash") for _ in range(5)))
    assert [pending for pending in taken if pending is not None] == [PENDING]
    assert await store.take("other") is None


async def test_one_of_many_claims_a_grant_and_the_next_when_it_is_given_back_or_has_lapsed(store: OAuthStore) -> None:
    async def claim(name: str, now_s: float = 0) -> Grant | None:
        return await store.claim(OWNER, GRANT.issuer, name, now=after(now_s))

    assert await claim("nothing is there yet") is None
    await store.save(OWNER, GRANT)
    claimed = await asyncio.gather(*(claim(f"claim-{number}") for number in range(5)))
    assert claimed.count(GRANT) == 1
    renewed = replace(GRANT, access_token="next", refresh_token="next")
    winner = f"claim-{claimed.index(GRANT)}"
    assert not await store.replace(OWNER, GRANT, "another's")
    assert await store.replace(OWNER, renewed, winner)
    assert await claim("too early") is None, "storing what it got gives nothing back"
    await store.release(OWNER, "another's")
    assert await claim("still too early") is None
    await store.release(OWNER, winner)
    assert await claim("second") == renewed
    assert await claim("third", CLAIM_LASTS.total_seconds() - 1) is None
    assert await claim("third", CLAIM_LASTS.total_seconds()) == renewed


async def test_a_renewal_replaces_neither_a_deleted_grant_nor_one_that_was_saved_meanwhile(store: OAuthStore) -> None:
    assert await store.save(OWNER, GRANT)
    assert await store.claim(OWNER, GRANT.issuer, "a claim", now=START)
    consent, renewed = replace(GRANT, access_token="consent"), replace(GRANT, access_token="renewed")
    await store.save(OWNER, consent)
    assert not await store.replace(OWNER, renewed, "a claim")
    assert await store.load(OWNER) == (consent,)
    assert await store.claim(OWNER, GRANT.issuer, "a claim", now=START)
    assert await store.remove(OWNER)
    assert not await store.replace(OWNER, renewed, "a claim")
    assert await store.load(OWNER) == ()


async def test_what_has_expired_is_dropped_when_the_next_is_stored(store: OAuthStore) -> None:
    await store.expect("old", PENDING, START)
    await store.expect("new", replace(PENDING, expires_at=after(2000)), after(601))
    assert await store.take("old") is None
    assert await store.take("new") is not None


async def test_nothing_secret_can_be_read_in_the_database(database: Database) -> None:
    store = await sql_store(database)
    await store.save(OWNER, GRANT)
    await store.expect("hash", PENDING, START)

    def everything(connection: Connection) -> str:
        tables = ("oauth_grant", "person_grant", "oauth_authorization", "mcp_server", "audit_event")
        return repr([connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables])

    stored = await database.read(everything, scope=SYSTEM)
    assert "https://auth.example.org" in stored
    assert "s3cret" not in stored


async def test_a_deleted_server_takes_its_grants_along(database: Database) -> None:
    store = await sql_store(database)
    await store.save(OWNER, GRANT)
    await store.expect("hash", PENDING, START)
    servers = SqlMcpServerStore(database=database, box=SecretBox(["a key for tests"]))
    await servers.delete(ORG, SERVER, an_audit_event(9, action=AuditAction.MCP_SERVER_DELETED))
    assert await store.load(OWNER) == ()
    assert await store.take("hash") is None


ANN, BEN = UserId("usr_ann"), UserId("usr_ben")
OF_ANN, OF_BEN = GrantOwner(ORG, SERVER, ANN), GrantOwner(ORG, SERVER, BEN)


@dataclass(frozen=True, kw_only=True)
class People:
    """A store of grants, and a change of the users whose grants they are."""

    store: OAuthStore
    change: Callable[[UserId, UserStatus], Awaitable[object]]


@pytest.fixture(params=["memory", "sql"])
async def people(request: pytest.FixtureRequest, database: Database) -> People:
    """Each adapter, with the server SERVER and the users ANN and BEN of ORG."""
    added = an_audit_event(2, action=AuditAction.USER_CREATED)
    users = {id_: a_user(id_, subject=id_) for id_ in (ANN, BEN)}
    if request.param == "sql":
        oauth, sql_users = await sql_store(database), SqlUserStore(database=database)
        for number, user in enumerate(users.values()):
            await sql_users.add(user, replace(added, id=AuditEventId(f"aud_user_{number}")))

        async def change(user_id: UserId, status: UserStatus) -> None:
            entry = replace(added, id=AuditEventId(f"aud_{user_id}_{status}"))
            await sql_users.change(ORG, user_id, lambda user: (replace(user, status=status), entry))

        return People(store=oauth, change=change)
    state = InMemoryState()
    state.servers[SERVER] = a_server()
    state.users |= users

    async def change_in_memory(user_id: UserId, status: UserStatus) -> None:
        state.users[user_id] = replace(state.users[user_id], status=status)

    return People(store=InMemoryOAuthStore(state), change=change_in_memory)


@pytest.mark.requirement("P3")
async def test_grants_of_persons_and_of_the_organization_are_apart(people: People) -> None:
    of_ann, of_ben = replace(GRANT, access_token="ann"), replace(GRANT, access_token="ben")
    await people.store.save(OF_ANN, of_ann)
    await people.store.save(OF_BEN, of_ben)
    assert await people.store.load(OWNER) == ()
    await people.store.save(OWNER, GRANT)
    assert [await people.store.load(owner) for owner in (OF_ANN, OF_BEN, OWNER)] == [(of_ann,), (of_ben,), (GRANT,)]
    assert await people.store.claim(OF_ANN, GRANT.issuer, "a claim", now=START) == of_ann
    assert await people.store.claim(OF_BEN, GRANT.issuer, "another", now=START) == of_ben
    assert await people.store.claim(OF_ANN, GRANT.issuer, "a second", now=START) is None


@pytest.mark.requirement("P3")
async def test_removing_the_grants_of_one_leaves_those_of_others(people: People) -> None:
    await people.store.save(OF_ANN, GRANT)
    await people.store.save(OF_BEN, GRANT)
    assert await people.store.remove(OF_ANN)
    assert not await people.store.remove(OF_ANN)
    assert (await people.store.load(OF_ANN), await people.store.load(OF_BEN)) == ((), (GRANT,))


@pytest.mark.requirement("P3")
async def test_a_person_who_is_not_active_has_no_grants_and_gets_none(people: People) -> None:
    await people.store.save(OF_ANN, GRANT)
    assert await people.store.claim(OF_ANN, GRANT.issuer, "before", now=START) == GRANT
    await people.change(ANN, UserStatus.DEACTIVATED)
    late = replace(GRANT, access_token="late")
    assert not await people.store.save(OF_ANN, late)
    assert not await people.store.replace(OF_ANN, late, "before")
    assert await people.store.load(OF_ANN) == ()
    assert await people.store.claim(OF_ANN, GRANT.issuer, "a claim", now=START) is None
    await people.change(ANN, UserStatus.ACTIVE)
    assert await people.store.load(OF_ANN) == (GRANT,)


@pytest.mark.requirement("P3")
async def test_nothing_is_kept_for_a_person_who_is_unknown(people: People) -> None:
    stranger = GrantOwner(ORG, SERVER, UserId("usr_stranger"))
    await people.store.save(stranger, GRANT)
    assert await people.store.load(stranger) == ()


@pytest.mark.requirement("P3")
async def test_a_removed_person_takes_their_grants_along(database: Database) -> None:
    store, users = await sql_store(database), SqlUserStore(database=database)
    added = an_audit_event(2, action=AuditAction.USER_CREATED)
    await users.add(a_user(ANN), added)
    await store.save(OF_ANN, GRANT)
    await users.change(ORG, ANN, lambda user: (user.removed(), replace(added, id=AuditEventId("aud_removed"))))
    count = text("SELECT count(*) FROM person_grant")
    assert await database.read(lambda connection: connection.execute(count).scalar_one(), scope=SYSTEM) == 0
