"""The contract of `PersonSecretStore`."""

import asyncio
from dataclasses import replace

import pytest

from domain.audit.event import AuditAction
from domain.errors import invalid
from domain.identity.user import UserStatus
from domain.ids import AuditEventId, McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from infrastructure.mcp.oauth.grants import GrantOwner
from tests.builders import ORG, OTHER_ORG, after, an_audit_event
from tests.contract.stores import Stores
from tests.mcp_builders import PERSON_SERVER, a_grant, a_secrets_server
from tests.people_builders import USER, a_user
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P3")

OTHER = UserId("usr_other")
OWNER = AccountOwner(ORG, PERSON_SERVER, USER)
GIVEN = GivenSecrets(binding="b", revision="rev_1", given_at=after(1), values={"token": "s3cret – 🙂", "user": "ann"})


@pytest.fixture
async def filled(stores: Stores) -> Stores:
    """With the server, and two people."""
    await stores.servers.add(a_secrets_server(), an_audit_event(1, action=AuditAction.MCP_SERVER_CREATED))
    for person in (USER, OTHER):
        added = an_audit_event(action=AuditAction.USER_CREATED)
        user = a_user(person, subject=person)
        await stores.user_access.add(user, replace(added, id=AuditEventId(f"aud_{person}")))
    return stores


async def test_what_a_person_gave_comes_back_exactly_and_to_them_only(filled: Stores) -> None:
    assert await filled.person_secrets.save(OWNER, lambda _: GIVEN)
    assert await filled.person_secrets.load(OWNER) == GIVEN
    for other in (
        OWNER._replace(person_id=OTHER),
        OWNER._replace(server_id=McpServerId("mcp_other")),
        OWNER._replace(organization_id=OTHER_ORG),
    ):
        assert await filled.person_secrets.load(other) is None


@pytest.mark.parametrize("what", ["secrets", "tokens"])
async def test_the_servers_for_which_something_of_a_person_is_stored_are_found_until_it_is_removed(
    filled: Stores, what: str
) -> None:
    async def found(organization_id: OrganizationId = ORG, person_id: UserId = USER) -> frozenset[McpServerId]:
        return await filled.person_secrets.servers(organization_id, person_id)

    assert await found() == frozenset()
    if what == "secrets":
        await filled.person_secrets.save(OWNER, lambda _: GIVEN)
    else:
        assert await filled.oauth.save(GrantOwner(*OWNER), a_grant())
    assert await found() == {PERSON_SERVER}
    assert await found(OTHER_ORG) == await found(person_id=OTHER) == frozenset()
    removed = filled.person_secrets.remove(OWNER) if what == "secrets" else filled.oauth.remove(GrantOwner(*OWNER))
    assert await removed
    assert await found() == frozenset()


async def test_what_is_given_again_replaces_what_there_was(filled: Stores) -> None:
    await filled.person_secrets.save(OWNER, lambda _: GIVEN)
    newer = replace(GIVEN, revision="rev_2", given_at=after(5), values={"token": "other"})
    await filled.person_secrets.save(OWNER, lambda _: newer)
    assert await filled.person_secrets.load(OWNER) == newer


async def test_of_values_that_are_given_at_the_same_time_all_are_kept(filled: Stores) -> None:
    async def give(name: str) -> bool:
        def decide(former: GivenSecrets | None) -> GivenSecrets:
            return replace(GIVEN, values={**({} if former is None else former.values), name: name})

        return await filled.person_secrets.save(OWNER, decide)

    names = ["token", "user", "zone", "team"]
    assert all(await asyncio.gather(*map(give, names)))
    given = await filled.person_secrets.load(OWNER)
    assert given is not None
    assert given.values == {name: name for name in names}


async def test_what_is_refused_changes_nothing(filled: Stores) -> None:
    await filled.person_secrets.save(OWNER, lambda _: GIVEN)

    def refuse(_: GivenSecrets | None) -> GivenSecrets:
        raise invalid("account_secrets_invalid", "The secrets are not valid.")

    with refused("account_secrets_invalid"):
        await filled.person_secrets.save(OWNER, refuse)
    assert await filled.person_secrets.load(OWNER) == GIVEN


async def test_a_person_deletes_their_own_and_those_of_others_stay(filled: Stores) -> None:
    of_other = OWNER._replace(person_id=OTHER)
    for owner in (OWNER, of_other):
        await filled.person_secrets.save(owner, lambda _: GIVEN)
    assert await filled.person_secrets.remove(OWNER)
    assert not await filled.person_secrets.remove(OWNER)
    assert await filled.person_secrets.load(OWNER) is None
    assert [await filled.person_secrets.has(each) for each in (OWNER, of_other)] == [False, True]
    assert await filled.person_secrets.load(of_other) == GIVEN


@pytest.mark.parametrize(
    "owner",
    [
        OWNER._replace(server_id=McpServerId("mcp_none")),
        OWNER._replace(person_id=UserId("usr_none")),
        OWNER._replace(organization_id=OrganizationId("org_none")),
    ],
    ids=["no server", "no person", "no organization"],
)
async def test_nothing_is_stored_for_who_or_what_is_not_there(filled: Stores, owner: AccountOwner) -> None:
    assert not await filled.person_secrets.save(owner, lambda _: GIVEN)
    assert await filled.person_secrets.load(owner) is None


async def test_a_person_who_is_not_active_has_none_and_gets_none(filled: Stores) -> None:
    await filled.person_secrets.save(OWNER, lambda _: GIVEN)
    entry = an_audit_event(5, action=AuditAction.USER_UPDATED)
    await filled.users.change(ORG, USER, lambda user: (replace(user, status=UserStatus.DEACTIVATED), entry))
    assert await filled.person_secrets.load(OWNER) is None
    assert await filled.person_secrets.has(OWNER)
    assert not await filled.person_secrets.save(OWNER, lambda _: GIVEN)


async def test_grants_of_authorization_servers_are_apart(filled: Stores) -> None:
    owner = GrantOwner(*OWNER)
    await filled.person_secrets.save(OWNER, lambda _: GIVEN)
    assert await filled.oauth.load(owner) == ()
    assert not await filled.oauth.remove(owner)
    assert await filled.person_secrets.load(OWNER) == GIVEN
