"""AccountsWithSecrets: what an account at a server with secrets of persons is, beside those of
authorization servers."""

from dataclasses import replace

import pytest

from application.mcp.account_secrets import AccountsWithSecrets
from application.mcp.authorization import Account, AuthorizationAnswer
from domain.mcp.given_secrets import GivenSecrets, account_owner, binding_of_secrets
from domain.mcp.server import McpServer
from tests.builders import KEY, START
from tests.doubles.authorizer import ISSUER, InMemoryAuthorizer
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.mcp_builders import a_person_server, a_secrets_server, a_state_with_servers
from tests.people_builders import USER, a_user

pytestmark = pytest.mark.requirement("P3")

GRANTED = Account(issuer=ISSUER, scope=None, renewed_at=START)


class Both:
    def __init__(self, server: McpServer) -> None:
        self.server = server.acting_for(USER)
        state = a_state_with_servers(server)
        state.users[USER] = a_user()
        self.grants, self.secrets = InMemoryAuthorizer(expires_at=START), InMemoryPersonSecretStore(state)
        self.accounts = AccountsWithSecrets(grants=self.grants, person_secrets=self.secrets)

    async def give(self, **values: str) -> None:
        owner = account_owner(self.server)
        assert owner is not None
        binding = binding_of_secrets(self.server.config)
        given = GivenSecrets(binding=binding, revision="r", given_at=START, values=values)
        assert await self.secrets.save(owner, lambda _: given)


async def test_all_secrets_are_an_account_and_some_of_them_are_none() -> None:
    both = Both(a_secrets_server("token", "user"))
    assert await both.accounts.account(both.server) is None
    await both.give(token="t")
    assert await both.accounts.account(both.server) is None
    await both.give(token="t", user="u")
    assert await both.accounts.account(both.server) == Account(issuer=None, scope=None, renewed_at=START)
    assert await both.accounts.account(replace(both.server, person_id=None)) is None


async def test_a_grant_is_no_account_at_a_server_that_takes_secrets_nor_the_other_way_round() -> None:
    both = Both(a_secrets_server())
    both.grants.accounts[both.server.id, USER] = GRANTED
    assert await both.accounts.account(both.server) is None
    await both.give(token="t")
    with_consent = replace(both.server, config=a_person_server().config)
    del both.grants.accounts[both.server.id, USER]
    assert await both.accounts.account(with_consent) is None


async def test_disconnecting_deletes_secrets_and_grants() -> None:
    both = Both(a_secrets_server())
    assert not await both.accounts.disconnect(both.server)
    await both.give(token="t")
    both.grants.accounts[both.server.id, USER] = GRANTED
    assert await both.accounts.disconnect(both.server)
    assert (both.secrets.given, both.grants.accounts) == ({}, {})


async def test_consents_are_those_of_authorization_servers() -> None:
    both = Both(a_person_server())
    await both.accounts.begin(both.server, KEY, browser="b")
    authorized = await both.accounts.complete(AuthorizationAnswer(state="state-1", code="c", browser="b"))
    assert authorized.server == both.server
    assert await both.accounts.account(both.server) == GRANTED
