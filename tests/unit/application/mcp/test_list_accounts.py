"""ListAccounts: the servers that people use with their own account, and whether they have connected
it."""

from dataclasses import replace

import pytest

from application.mcp.authorization import Account
from application.mcp.list_accounts import ListAccounts, ListedAccount
from domain.ids import UserId
from domain.mcp.auth import TokenExchangeAuth
from infrastructure.runtime.public_address import ListeningAddress
from tests.builders import START, a_server
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_person_server, a_state_with_servers, an_on_behalf_server
from tests.people_builders import USER, a_person
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")

ACCOUNT = Account(issuer=ISSUER, scope="read", renewed_at=START)


def listing(*connected: UserId) -> ListAccounts:
    """Of `files`, which all use with an account of the organization, and `tickets`, which these
    persons have connected."""
    server = a_person_server()
    authorizer = InMemoryAuthorizer(expires_at=START)
    authorizer.accounts = {(server.id, person): ACCOUNT for person in connected}
    return ListAccounts(
        servers=InMemoryMcpServerStore(a_state_with_servers(a_server(), server)),
        authorizer=authorizer,
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
    listed = ListedAccount(server=server, account=ACCOUNT, link="")
    assert (listed.sign_in_with, listed.is_connected) == (needed, needed is None)
    assert not replace(listed, account=None).is_connected


async def test_what_others_have_connected_is_not_shown() -> None:
    [listed] = await listing(UserId("usr_other")).execute(a_person())
    assert listed.account is None


async def test_a_key_has_no_accounts() -> None:
    with refused("person_required"):
        await listing().execute(a_principal())
