"""MCP servers that are used with each person's own account: whose token reaches the server, over
real HTTP."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import TypeVar

import pytest

from application.mcp.authorization import AuthorizationAnswer, AuthorizedServer
from application.mcp.list_accounts import ListAccounts
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, ServerState
from domain.errors import ServiceError
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId, UserId
from domain.mcp.auth import AuthorizationCodeAuth, BearerAuth, ServerAuth
from domain.mcp.server import Credentials, Isolation, McpServer
from domain.secrets.secret import SecretRef
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.oauth.grants import grant_owner
from infrastructure.mcp.oauth.parts import OAuthParts
from infrastructure.runtime.public_address import ListeningAddress
from tests.builders import ORG, RUN, THREAD
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.integration.mcp.oauth_world import BY_PERSON, World, oauth_world
from tests.integration.mcp.parts import a_call, sdk_connections, text_of, until
from tests.people_builders import a_person, a_user
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P3")

Result = TypeVar("Result")

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")


def of_each(world: World, *people: UserId, isolation: Isolation = Isolation.SHARED) -> McpServer:
    """The protected server, used with each person's account."""
    for person in people or (ANN, BEN):
        world.state.users[person] = a_user(person, subject=person)
    return world.server(BY_PERSON, credentials=Credentials.PERSON, isolation=isolation, max_concurrency=50)


async def connected(
    world: World, server: McpServer, person: UserId, *, oauth: OAuthParts | None = None
) -> AuthorizedServer:
    """The person consents, with the account of their name."""
    authorizer = (oauth or world.oauth).authorizer
    request = await authorizer.begin(server.acting_for(person), ApiKeyId(person), browser=f"browser of {person}")
    back = world.authorization.authorize(request.url, account=person)
    return await authorizer.complete(
        AuthorizationAnswer(state=back["state"], code=back["code"], issuer=back["iss"], browser=f"browser of {person}")
    )


async def account_at(
    world: World, connections: SdkMcpConnections, server: McpServer, person: UserId | None
) -> str | None:
    """Whose token the server got."""
    scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=person)
    return world.authorization.accounts.get(text_of(await connections.call_tool(server, scope, a_call("whoami"))))


async def failure_of(connections: SdkMcpConnections, server: McpServer, person: UserId | None) -> McpFailure:
    scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=person)
    with pytest.raises(McpFailure) as failed:
        await connections.call_tool(server, scope, a_call("whoami"))
    return failed.value


async def waiting_for_a_token(world: World, use: Coroutine[None, None, Result]) -> asyncio.Task[Result]:
    """The use of the server, once the authorization server holds its request for a token."""
    world.authorization.gate = asyncio.Event()
    using = asyncio.create_task(use)
    await until(lambda: world.authorization.waiting)
    return using


def let_renew(world: World) -> None:
    assert world.authorization.gate is not None
    world.authorization.gate.set()


@pytest.mark.parametrize("isolation", list(Isolation))
async def test_each_person_acts_with_their_own_account_on_a_connection_of_their_own(isolation: Isolation) -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world, isolation=isolation)
        await connected(world, server, ANN)
        await connected(world, server, BEN)
        for person in (ANN, BEN, ANN):
            assert await account_at(world, connections, server, person) == person
        assert connections.connection_count == 2


async def test_a_person_without_a_consent_gets_nobody_elses_and_the_server_is_not_in_trouble() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        assert await account_at(world, connections, server, ANN) == ANN
        assert (await failure_of(connections, server, BEN)).kind is McpFailureKind.NEEDS_AUTH
        assert connections.status(server).state is ServerState.CONNECTED
        assert await account_at(world, connections, server, ANN) == ANN


async def test_without_a_person_nothing_is_sent() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        asked_before = world.protected.refused
        assert (await failure_of(connections, server, None)).kind is McpFailureKind.NEEDS_AUTH
        assert (world.protected.calls, world.protected.refused) == (0, asked_before)


async def test_a_grant_of_the_organization_is_not_used_for_persons_nor_theirs_for_the_organization() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        of_organization = replace(server, config=replace(server.config, credentials=Credentials.ORGANIZATION))
        await connected(world, server, ANN)
        assert (await failure_of(connections, of_organization, ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_deactivated_person_is_used_no_more_and_nothing_is_stored_for_them() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        assert await account_at(world, connections, server, ANN) == ANN
        world.state.users[ANN] = a_user(ANN, status=UserStatus.DEACTIVATED)
        world.oauth.forget_organization(None)
        assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH
        assert await world.oauth.authorizer.account(server.acting_for(ANN)) is None


async def test_a_disconnected_account_needs_a_new_consent_and_others_stay() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        await connected(world, server, BEN)
        assert await world.oauth.authorizer.disconnect(server.acting_for(ANN))
        assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH
        assert await account_at(world, connections, server, BEN) == BEN
        await connected(world, server, ANN)
        assert await account_at(world, connections, server, ANN) == ANN


async def test_a_consent_in_another_browser_is_not_taken() -> None:
    async with oauth_world() as world:
        server = of_each(world)
        request = await world.oauth.authorizer.begin(server.acting_for(ANN), ApiKeyId(ANN), browser="of Ann")
        back = world.authorization.authorize(request.url, account=BEN)
        answer = AuthorizationAnswer(state=back["state"], code=back["code"], issuer=back["iss"])
        with refused("authorization_elsewhere"):
            await world.oauth.authorizer.complete(replace(answer, browser="of Ben"))
        with pytest.raises(ServiceError):  # nor is it kept for another try
            await world.oauth.authorizer.complete(replace(answer, browser="of Ann"))
        assert world.store.grants == {}


async def test_a_renewal_in_flight_does_not_bring_a_disconnected_account_back() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        assert await account_at(world, connections, server, ANN) == ANN
        world.clock.advance(3590)
        calling = await waiting_for_a_token(world, failure_of(connections, server, ANN))
        assert await world.oauth.authorizer.disconnect(server.acting_for(ANN))
        let_renew(world)
        assert (await calling).kind is McpFailureKind.NEEDS_AUTH
        assert world.store.grants == {}
        assert await world.oauth.authorizer.account(server.acting_for(ANN)) is None
        assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_consent_during_a_renewal_is_the_one_that_is_used() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        await connected(world, server, ANN)
        assert await account_at(world, connections, server, ANN) == ANN
        world.clock.advance(3590)
        calling = await waiting_for_a_token(world, account_at(world, connections, server, ANN))
        (key,) = world.store.grants
        consent = replace(world.store.grants[key], access_token="consent", refresh_token=None, expires_at=None)
        world.authorization.access_tokens["consent"] = world.protected.url
        world.authorization.accounts["consent"] = "another account of Ann"
        assert await world.store.save(key[0], consent)
        let_renew(world)
        assert await calling == "another account of Ann"
        assert world.store.grants == {key: consent}


async def test_a_grant_that_was_deleted_without_notice_is_used_no_more() -> None:
    async with oauth_world() as world:
        server = of_each(world).acting_for(ANN)
        oauth = world.again(is_told=False)
        await connected(world, server, ANN, oauth=oauth)
        assert await oauth.authorizer.account(server) is not None
        assert await world.store.remove(grant_owner(server))
        assert await oauth.authorizer.account(server) is None


async def test_a_consent_of_a_person_who_was_deactivated_meanwhile_is_refused() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = of_each(world)
        request = await world.oauth.authorizer.begin(server.acting_for(ANN), ApiKeyId(ANN), browser="of Ann")
        back = world.authorization.authorize(request.url, account=ANN)
        world.state.users[ANN] = a_user(ANN, status=UserStatus.DEACTIVATED)
        answer = AuthorizationAnswer(state=back["state"], code=back["code"], issuer=back["iss"], browser="of Ann")
        with refused("authorization_outdated"):
            await world.oauth.authorizer.complete(answer)
        assert await world.oauth.authorizer.account(server.acting_for(ANN)) is None
        assert (await failure_of(connections, server, ANN)).kind is McpFailureKind.NEEDS_AUTH


async def test_a_second_consent_says_that_there_was_one_before() -> None:
    async with oauth_world() as world:
        server = of_each(world)
        first = await connected(world, server, ANN)
        second = await connected(world, server, ANN)
        assert (first.had_grant, second.had_grant) == (False, True)


@pytest.mark.parametrize("auth", [None, BearerAuth(token=SecretRef(name="TOKEN")), AuthorizationCodeAuth()])
async def test_what_is_left_at_a_server_that_became_the_organizations_is_listed_until_it_is_disconnected(
    auth: ServerAuth | None,
) -> None:
    async with oauth_world() as world:
        server = of_each(world)
        await connected(world, server, ANN)
        authorizer = world.oauth.authorizer
        listing = ListAccounts(
            servers=InMemoryMcpServerStore(world.state),
            authorizer=authorizer,
            person_secrets=InMemoryPersonSecretStore(world.state, world.store),
            address=ListeningAddress("https://here"),
        )

        async def listed(person: UserId) -> list[tuple[bool, bool, bool]]:
            accounts = await listing.execute(a_person(id=person))
            return [(each.is_used, each.is_stored, each.is_connected) for each in accounts]

        assert (await listed(ANN), await listed(BEN)) == ([(True, True, True)], [(True, False, False)])
        changed = replace(server, config=replace(server.config, auth=auth, credentials=Credentials.ORGANIZATION))
        world.state.servers[server.id] = changed
        assert (await listed(ANN), await listed(BEN)) == ([(False, True, False)], [])
        assert await authorizer.disconnect(replace(changed, person_id=ANN))
        assert await listed(ANN) == []
