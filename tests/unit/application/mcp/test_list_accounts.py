"""ListAccounts: the servers that people use with their own account, and whether they have connected
it."""

from dataclasses import replace

import pytest

from application.mcp.authorization import Account
from application.mcp.list_accounts import ListAccounts, ListedAccount
from domain.ids import McpServerId, UserId
from domain.mcp.auth import TokenExchangeAuth
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from domain.mcp.server import Credentials, McpServer
from infrastructure.mcp.oauth.grants import GrantOwner
from infrastructure.runtime.public_address import ListeningAddress
from interfaces.http.accounts.views import account_view
from tests.builders import ORG, START, a_server
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.mcp_builders import a_grant, a_person_server, a_state_with_servers, an_on_behalf_server
from tests.people_builders import USER, a_person
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")

ACCOUNT = Account(issuer=ISSUER, scope="read", renewed_at=START)


class OfPersons(InMemoryAuthorizer):
    """Is not asked for accounts of the organization: those servers may have none."""

    async def account(self, server: McpServer) -> Account | None:
        assert server.config.credentials is Credentials.PERSON
        return await super().account(server)


def listing(
    *connected: UserId,
    gave: UserId | None = None,
    to: McpServerId | None = None,
    server: McpServer | None = None,
    oauth: InMemoryOAuthStore | None = None,
) -> ListAccounts:
    """Of `files`, which all use with an account of the organization, and `tickets`, which these
    persons have connected. Something of one of them, who `gave` it, is stored for a server."""
    server = server or a_person_server()
    state = a_state_with_servers(a_server(), server)
    secrets = InMemoryPersonSecretStore(state, oauth)
    if gave is not None:
        given = GivenSecrets(binding="b", revision="rev_1", given_at=START, values={"token": "s3cret"})
        secrets.given[AccountOwner(ORG, to or server.id, gave)] = given
    authorizer = OfPersons(expires_at=START)
    authorizer.accounts = {(server.id, person): ACCOUNT for person in connected}
    return ListAccounts(
        servers=InMemoryMcpServerStore(state),
        authorizer=authorizer,
        person_secrets=secrets,
        address=ListeningAddress("https://here"),
    )


async def test_only_servers_that_are_used_with_each_persons_account_are_listed() -> None:
    [listed] = await listing(USER).execute(a_person())
    assert (listed.server.config.slug, listed.account) == ("tickets", ACCOUNT)
    assert listed.link == "https://here/console/accounts?server=tickets"


@pytest.mark.parametrize(
    ("issuer", "needed"),
    [
        (None, None),
        (f"{ISSUER}/realm", None),
        ("https://other.example", "https://other.example"),
        ("https://[", "https://["),
    ],
)
async def test_a_sign_in_with_another_provider_than_the_server_names_does_not_connect(
    issuer: str | None, needed: str | None
) -> None:
    server = an_on_behalf_server()
    server = replace(server, config=replace(server.config, auth=TokenExchangeAuth(issuer=issuer)))
    listed = ListedAccount(server=server, account=ACCOUNT, is_stored=True, link="")
    assert (listed.sign_in_with, listed.is_connected) == (needed, needed is None)
    assert not replace(listed, account=None).is_connected


async def test_what_others_have_connected_is_not_shown() -> None:
    other = UserId("usr_other")
    for gone in (listing(other), listing(gave=other), listing(gave=other, to=a_server().id)):
        [listed] = await gone.execute(a_person())
        assert (listed.account, listed.is_stored) == (None, False)


async def test_what_is_left_from_when_a_server_was_used_with_each_persons_account_is_listed() -> None:
    listed = {each.server.config.slug: each for each in await listing(gave=USER, to=a_server().id).execute(a_person())}
    assert [(slug, each.is_used, each.is_stored, each.is_connected) for slug, each in listed.items()] == [
        ("files", False, True, False),
        ("tickets", True, False, False),
    ]


async def test_what_is_left_for_a_server_of_a_group_that_the_person_left_is_listed_by_its_slug_alone() -> None:
    server = a_person_server()
    of_group = replace(server, config=replace(server.config, team="support"))
    accounts = listing(USER, gave=USER, server=of_group)
    [seen] = await accounts.execute(replace(a_person(), teams=frozenset({"support"})))
    assert (seen.is_visible, seen.is_used, seen.is_stored, seen.account) == (True, True, True, ACCOUNT)
    [left] = await accounts.execute(a_person())
    assert (left.is_visible, left.is_used, left.is_stored, left.account) == (False, False, True, None)
    assert account_view(left) == {
        "server": "tickets",
        "server_id": of_group.id,
        "connected": False,
        "used": False,
        "stored": True,
        "sign_in_with": None,
        "secrets": [],
        "address": "",
        "env": {},
        "offer": "",
        "issuer": None,
        "scope": None,
        "renewed_at": None,
        "link": "",
    }
    assert await listing(server=of_group).execute(a_person()) == ()


async def test_what_a_sign_in_stored_for_a_server_of_a_group_does_not_show_it_to_others() -> None:
    server = an_on_behalf_server()
    of_group = replace(server, config=replace(server.config, team="board"))
    oauth = InMemoryOAuthStore(InMemoryState())
    oauth.grants[GrantOwner(ORG, of_group.id, USER), ISSUER] = a_grant()
    accounts = listing(server=of_group, oauth=oauth)
    assert await accounts.execute(a_person()) == ()
    [listed] = await accounts.execute(replace(a_person(), teams=frozenset({"board"})))
    assert (listed.is_visible, listed.is_stored) == (True, True)


async def test_a_key_has_no_accounts() -> None:
    with refused("person_required"):
        await listing().execute(a_principal())
