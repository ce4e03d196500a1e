"""Tokens on behalf of people, from their sign-in with a real identity provider, for a real MCP
server that checks each."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from application.mcp.authorization import PersonSignIn
from application.mcp.list_accounts import ListedAccount
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.identity.user import UserStatus
from domain.ids import UserId
from domain.mcp.auth import IdJagAuth, OnBehalfAuth, SubjectToken, TokenExchangeAuth
from domain.mcp.server import Credentials, McpServer
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.oauth.grants import GrantOwner
from infrastructure.secrets.redaction import REDACTED
from tests.builders import ORG, OTHER_ORG, RUN, THREAD
from tests.e2e.identity_provider import (
    AT_TICKETS,
    AT_TICKETS_SECRET,
    CLI_CLIENT,
    SECRET,
    IdentityProvider,
    needs_identity_provider,
    providing_for,
)
from tests.integration.mcp.oauth_processes import Processes
from tests.integration.mcp.oauth_world import HERE, oauth_world
from tests.integration.mcp.parts import a_call, text_of
from tests.integration.mcp.trusting_server import trusting
from tests.people_builders import PROVIDER, a_provider, a_user

pytestmark = [pytest.mark.requirement("P4"), needs_identity_provider()]

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")
EXCHANGE = TokenExchangeAuth()
AN_HOUR = timedelta(hours=1)


class World(Processes):
    """Processes of a service, and the identity provider that its people sign in with."""

    company: IdentityProvider

    def server_for(self, auth: OnBehalfAuth = EXCHANGE) -> McpServer:
        return self.registered(auth, credentials=Credentials.PERSON)

    def tokens(self, person: UserId) -> PersonSignIn:
        """What a sign-in of the person gives."""
        client, callback = "dragoman", f"{HERE}/console/sign-in/callback"
        given = self.company.tokens(
            person.removeprefix("usr_"), client_id=client, callback=callback, secret=SECRET, scope="openid"
        )
        until = datetime.now(UTC) + AN_HOUR
        return PersonSignIn(
            provider_id=PROVIDER,
            issuer=self.company.issuer,
            id_token=given["id_token"],
            id_token_expires_at=until,
            access_token=given["access_token"],
            access_token_expires_at=until,
        )

    async def sign_in(self, server: McpServer, person: UserId, sign_in: PersonSignIn | None = None) -> bool:
        return await self.oauth.authorizer.signed_in(server.acting_for(person), sign_in or self.tokens(person))


@asynccontextmanager
async def world_of(company: IdentityProvider, *, issuer: str | None = None) -> AsyncIterator[World]:
    """The MCP server takes tokens of `issuer`, else those of the company's provider."""
    async with trusting(issuer or company.issuer) as server:
        world = World(server)
        world.company = company
        world.state.identity_providers[PROVIDER] = a_provider(issuer=company.issuer, client_secret=SECRET)
        for person in (ANN, BEN):
            world.state.users[person] = a_user(person, subject=person)
        yield world


@contextmanager
def a_company(**options: object) -> Iterator[IdentityProvider]:
    with providing_for(HERE, **options) as company:  # type: ignore[arg-type]
        yield company


def acting(person: UserId | None) -> ConnectionScope:
    return ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=person)


async def who_am_i(connections: SdkMcpConnections, server: McpServer, person: UserId | None) -> str:
    return text_of(await connections.call_tool(server, acting(person), a_call("whoami")))


async def failure_of(connections: SdkMcpConnections, server: McpServer, person: UserId | None) -> McpFailure:
    with pytest.raises(McpFailure) as failed:
        await who_am_i(connections, server, person)
    return failed.value


@pytest.mark.parametrize("subject", list(SubjectToken))
async def test_each_person_acts_as_themselves_with_a_token_for_this_server_alone(subject: SubjectToken) -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for(TokenExchangeAuth(subject_token=subject))
            for person in (ANN, BEN):
                assert await world.sign_in(server, person)
            calls = [who_am_i(connections, server, person) for person in (ANN, BEN) * 5]
            assert await asyncio.gather(*calls) == ["ann by dragoman", "ben by dragoman"] * 5
            assert {claims["aud"] for claims in world.server.seen} == {server.config.url}
            assert len({claims["jti"] for claims in world.server.seen}) == 2
            assert world.server.refused == []


async def test_a_server_may_be_known_to_the_provider_by_its_name_and_with_a_client_for_it() -> None:
    async with world_with_names() as (world, connections):
        server = world.server_for(TokenExchangeAuth(audience="tickets"))
        await world.sign_in(server, ANN)
        assert await who_am_i(connections, server, ANN) == "ann by dragoman"
        # The ID token is for the client that people sign in with: no other client exchanges it.
        other = world.server_for(TokenExchangeAuth(client_id=AT_TICKETS, client_secret=AT_TICKETS_SECRET))
        await world.sign_in(other, ANN)
        assert "gives no token" in (await failure_of(connections, replace(other, version=2), ANN)).detail


@asynccontextmanager
async def world_with_names() -> AsyncIterator[tuple[World, SdkMcpConnections]]:
    """The provider knows the MCP server as `tickets`; it must be told before the server has its
    address."""
    async with trusting("http://127.0.0.1:1") as server:
        with a_company(audiences={"tickets": server.url}) as company:
            server.trust(company.issuer)
            world = World(server)
            world.company = company
            world.state.identity_providers[PROVIDER] = a_provider(issuer=company.issuer, client_secret=SECRET)
            world.state.users[ANN] = a_user(ANN, subject=ANN)
            async with world.process() as connections:
                yield world, connections


async def test_tokens_of_sign_ins_and_what_was_exchanged_are_hidden_from_logs_and_traces() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server, sign_in = world.server_for(), world.tokens(ANN)
            await world.sign_in(server, ANN, sign_in)
            await who_am_i(connections, server, ANN)
            [grant] = await world.store.load(GrantOwner(ORG, server.id, ANN))
            shown = world.redactor.redact(f"{sign_in.id_token} {grant.access_token}")
            assert shown == f"{REDACTED} {REDACTED}"
            assert sign_in.id_token not in repr(grant) + repr(sign_in)


@pytest.mark.parametrize("person", [ANN, None], ids=["a person", "a key"])
async def test_without_a_sign_in_nothing_is_sent_and_the_person_is_asked(person: UserId | None) -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            await world.sign_in(server, BEN)  # another's is not used, nor one of the organization
            failure = await failure_of(connections, server, person)
            assert failure.kind is McpFailureKind.NEEDS_AUTH
            assert (world.server.seen, world.server.refused) == ([], [])


async def test_an_outdated_sign_in_is_asked_for_again_and_is_no_account() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            past = datetime.now(UTC) - timedelta(seconds=1)
            await world.sign_in(server, ANN, replace(world.tokens(ANN), id_token_expires_at=past))
            assert await world.oauth.authorizer.account(server.acting_for(ANN)) is None
            assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH
            await world.sign_in(server, ANN)
            assert await world.oauth.authorizer.account(server.acting_for(ANN)) is not None
            assert await who_am_i(connections, server, ANN) == "ann by dragoman"


async def test_a_sign_in_that_the_provider_takes_no_more_is_asked_for_again() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            for_others = company.tokens("ann", client_id=CLI_CLIENT)["id_token"]  # as a stolen one would be
            await world.sign_in(server, ANN, replace(world.tokens(ANN), id_token=for_others))
            assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH
            assert await world.oauth.authorizer.account(server.acting_for(ANN)) is None
            assert world.server.seen == []


@pytest.mark.parametrize("step", ["claim", "replace"])
async def test_a_sign_in_during_the_exchange_of_a_former_one_is_used(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server, through = world.server_for(), getattr(world.store, step)

            async def after_a_sign_in(*given: object, **named: object) -> object:
                monkeypatch.undo()
                await world.sign_in(server, ANN)
                return await through(*given, **named)

            for_others = company.tokens("ann", client_id=CLI_CLIENT)["id_token"]
            await world.sign_in(server, ANN, replace(world.tokens(ANN), id_token=for_others))
            monkeypatch.setattr(world.store, step, after_a_sign_in)
            assert await who_am_i(connections, server, ANN) == "ann by dragoman"
            assert world.server.refused == []


async def test_a_token_that_says_no_end_is_used_as_long_as_the_sign_in_is_valid() -> None:
    with a_company(saysNoEnd=True) as company:
        async with world_of(company) as world, world.process() as connections:
            server, sign_in = world.server_for(), world.tokens(ANN)
            await world.sign_in(server, ANN, sign_in)
            await who_am_i(connections, server, ANN)
            [grant] = await world.store.load(GrantOwner(ORG, server.id, ANN))
            assert grant.expires_at == sign_in.id_token_expires_at


async def test_what_the_provider_does_not_give_is_said_and_nobody_is_asked_to_sign_in() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for(TokenExchangeAuth(audience="unknown"))
            await world.sign_in(server, ANN)
            failure = await failure_of(connections, server, ANN)
            assert failure.kind is McpFailureKind.NOT_CONNECTED
            assert "invalid_target" in failure.detail


async def test_processes_that_are_refused_together_exchange_a_persons_sign_in_once() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as first:
            server = world.server_for()
            await world.sign_in(server, ANN)
            await who_am_i(first, server, ANN)
            async with world.process() as second:
                await who_am_i(second, server, ANN)
                world.server.revoked.update(claims["jti"] for claims in world.server.seen)
                calls = [who_am_i(each, server, ANN) for each in (first, second) for _ in range(5)]
                assert set(await asyncio.gather(*calls)) == {"ann by dragoman"}
                assert len({claims["jti"] for claims in world.server.seen} - world.server.revoked) == 1


async def test_a_person_without_access_gets_nothing_and_leaves_nothing() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            await world.sign_in(server, ANN)
            await who_am_i(connections, server, ANN)
            world.state.users[ANN] = replace(world.state.users[ANN], status=UserStatus.DEACTIVATED)
            assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH
            assert not await world.sign_in(server, ANN)


async def test_a_changed_audience_needs_a_new_sign_in_and_uses_no_former_token() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            await world.sign_in(server, ANN)
            await who_am_i(connections, server, ANN)
            auth = TokenExchangeAuth(resource="https://other.example.org/mcp")
            changed = replace(server, version=2, config=replace(server.config, auth=auth))
            assert (await failure_of(connections, changed, ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_an_authorization_server_that_the_mcp_server_names_gets_no_token_of_a_person() -> None:
    async with oauth_world() as outside:
        with a_company() as company:
            async with world_of(company, issuer=outside.authorization.url) as world, world.process() as connections:
                server = world.server_for()
                await world.sign_in(server, ANN)
                # Its metadata name another issuer; the token is asked for at the company's provider
                # all the same.
                await failure_of(connections, server, ANN)
                assert outside.authorization.forms == []


async def test_an_authorization_server_of_the_configuration_that_is_not_the_companys_gets_no_token_either() -> None:
    async with oauth_world() as outside:
        with a_company() as company:
            async with world_of(company) as world, world.process() as connections:
                auth = TokenExchangeAuth(issuer=outside.authorization.url, client_id="me", client_secret="s3cret")
                server = world.server_for(auth)
                await world.sign_in(server, ANN)
                failure = await failure_of(connections, server, ANN)
                assert "not of the identity provider" in failure.detail
                assert outside.authorization.forms == []


@pytest.mark.parametrize("is_companys", [True, False])
async def test_an_account_names_the_provider_that_the_person_signed_in_with(is_companys: bool) -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process():
            auth = TokenExchangeAuth(issuer=f"{company.issuer}/tokens" if is_companys else "https://other.example")
            server = world.server_for(auth)
            await world.sign_in(server, ANN)
            account = await world.oauth.authorizer.account(server.acting_for(ANN))
            listed = ListedAccount(server=server, account=account, is_stored=True, link="")
            assert account is not None
            assert account.issuer == company.issuer
            needed = None if is_companys else auth.issuer
            assert (listed.is_connected, listed.sign_in_with) == (is_companys, needed)


async def test_an_admin_of_another_organization_than_the_providers_names_no_audience() -> None:
    with a_company(audiences={"payroll": "https://payroll.example.org"}) as company:
        async with world_of(company) as world, world.process() as connections:
            theirs = a_provider(issuer=company.issuer, client_secret=SECRET, organization_id=OTHER_ORG)
            world.state.identity_providers[PROVIDER] = theirs
            for auth in (
                TokenExchangeAuth(audience="payroll"),
                TokenExchangeAuth(resource="https://payroll.example.org"),
                TokenExchangeAuth(issuer=company.issuer),
                TokenExchangeAuth(scopes=("payroll.write",)),
                TokenExchangeAuth(client_id=AT_TICKETS, client_secret=AT_TICKETS_SECRET),
                IdJagAuth(issuer="http://127.0.0.1:1", client_id="me", client_secret="s3cret"),  # nothing answers there
            ):
                server = world.server_for(auth)
                await world.sign_in(server, ANN)
                assert "another organization" in (await failure_of(connections, server, ANN)).detail
                await connections.forget(ORG, server.id)
            assert (world.server.seen, world.server.refused) == ([], [])
            server = world.server_for()  # for its own URL
            await world.sign_in(server, ANN)
            assert await who_am_i(connections, server, ANN) == "ann by dragoman"


async def test_a_server_that_wants_more_scopes_is_not_the_persons_to_mend() -> None:
    with a_company() as company:
        async with world_of(company) as world, world.process() as connections:
            server = world.server_for()
            await world.sign_in(server, ANN)
            await who_am_i(connections, server, ANN)
            [grant] = await world.store.load(GrantOwner(ORG, server.id, ANN))
            shown = {"authorization": f"Bearer {grant.access_token}"}
            wanting = ['Bearer error="insufficient_scope", scope="write"']
            with pytest.raises(TransportFailedError) as failed:
                await world.oauth.credentials(server.acting_for(ANN)).renewed(shown, 403, wanting)
            assert not failed.value.fault.needs_auth
            assert "auth.scopes" in failed.value.fault.detail


# --- assertions for the authorization server of the MCP server (ID-JAG) ---


@asynccontextmanager
async def managed() -> AsyncIterator[tuple[World, SdkMcpConnections, IdentityProvider]]:
    """The MCP server has an authorization server, which takes assertions of the company's
    provider."""
    # Each has to know the other: the provider gives assertions for all that the test names later.
    with a_company(assertionsFor={"*": AT_TICKETS}) as company, a_company(trusts=company.issuer) as tickets:
        async with world_of(company, issuer=tickets.issuer) as world, world.process() as connections:
            yield world, connections, tickets


def by_assertion(issuer: str) -> IdJagAuth:
    return IdJagAuth(issuer=issuer, client_id=AT_TICKETS, client_secret=AT_TICKETS_SECRET)


async def test_the_companys_provider_vouches_for_each_person_at_the_servers_authorization_server() -> None:
    async with managed() as (world, connections, tickets):
        server = world.server_for(by_assertion(tickets.issuer))
        for person in (ANN, BEN):
            assert await world.sign_in(server, person)
        calls = [who_am_i(connections, server, person) for person in (ANN, BEN) * 3]
        assert await asyncio.gather(*calls) == [f"ann by {AT_TICKETS}", f"ben by {AT_TICKETS}"] * 3
        assert {(claims["iss"], claims["aud"]) for claims in world.server.seen} == {(tickets.issuer, server.config.url)}


async def test_an_assertion_is_asked_for_again_when_the_server_refuses_the_token() -> None:
    async with managed() as (world, connections, tickets):
        server = world.server_for(by_assertion(tickets.issuer))
        await world.sign_in(server, ANN)
        await who_am_i(connections, server, ANN)
        world.server.revoked.update(claims["jti"] for claims in world.server.seen)
        assert await who_am_i(connections, server, ANN) == f"ann by {AT_TICKETS}"


async def test_an_assertion_for_one_authorization_server_is_taken_by_no_other() -> None:
    async with managed() as (world, connections, tickets):
        with a_company(trusts=tickets.issuer) as other:  # it trusts another company
            server = world.server_for(by_assertion(other.issuer))
            await world.sign_in(server, ANN)
            failure = await failure_of(connections, server, ANN)
            assert failure.kind is McpFailureKind.NOT_CONNECTED
            assert "takes no assertion of the identity provider (invalid_grant)" in failure.detail
            assert world.server.seen == []


async def test_a_provider_that_gives_no_assertion_for_the_server_is_said() -> None:
    with a_company() as company, a_company(trusts=company.issuer) as tickets:
        async with world_of(company, issuer=tickets.issuer) as world, world.process() as connections:
            server = world.server_for(by_assertion(tickets.issuer))
            await world.sign_in(server, ANN)
            failure = await failure_of(connections, server, ANN)
            assert failure.kind is McpFailureKind.NOT_CONNECTED
            assert "invalid_target" in failure.detail
