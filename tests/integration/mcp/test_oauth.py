"""OAuth 2.1 to a protected MCP server: obtaining, renewing, refusing, over real HTTP."""

import asyncio
from dataclasses import replace

import pytest

from application.mcp.authorization import AuthorizationAnswer
from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.ids import McpServerId
from domain.mcp.auth import ApiKeyAuth, AuthorizationCodeAuth, BearerAuth
from domain.mcp.server import McpServer
from domain.secrets.secret import Secret, SecretRef
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.secrets.redaction import REDACTED
from tests.builders import KEY, ORG, START, an_audit_event, numbered
from tests.integration.mcp.oauth_world import BY_PERSON, CLIENT, CREDENTIALS, SECRET, World, oauth_world
from tests.integration.mcp.parts import IN_RUN, a_call, sdk_connections, text_of, until

pytestmark = pytest.mark.requirement("B12")


async def who_am_i(connections: SdkMcpConnections, server: McpServer) -> str:
    return text_of(await connections.call_tool(server, IN_RUN, a_call("whoami")))


async def failure_of(connections: SdkMcpConnections, server: McpServer) -> McpFailure:
    with pytest.raises(McpFailure) as failed:
        await connections.call_tool(server, IN_RUN, a_call("whoami"))
    return failed.value


async def authorized(world: World, server: McpServer) -> None:
    """A person agrees."""
    request = await world.oauth.authorizer.begin(server, KEY)
    answer = world.authorization.authorize(request.url)
    await world.oauth.authorizer.complete(
        AuthorizationAnswer(state=answer["state"], code=answer["code"], issuer=answer["iss"])
    )


async def test_client_credentials_find_the_authorization_server_and_get_a_token_for_just_this_server() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(replace(CREDENTIALS, scopes=("tickets:read",)))
        assert await who_am_i(connections, server) == "access-token-1"
        assert await who_am_i(connections, server) == "access-token-1"
        assert world.authorization.forms == [
            {"grant_type": "client_credentials", "resource": world.protected.url, "scope": "tickets:read"}
        ]
        assert connections.status(server).state is ServerState.CONNECTED


async def test_a_client_secret_may_be_a_named_secret_and_tokens_are_hidden_from_logs_and_traces() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        secret = Secret(organization_id=ORG, name="CLIENT_SECRET", created_at=START, updated_at=START)
        await world.secrets.put(secret, SECRET, an_audit_event())
        server = world.server(replace(CREDENTIALS, client_secret=SecretRef("CLIENT_SECRET")))
        token = await who_am_i(connections, server)
        assert world.redactor.redact(f"{token} {SECRET}") == f"{REDACTED} {REDACTED}"


async def test_after_a_restart_the_stored_token_is_used_without_asking_again() -> None:
    async with oauth_world() as world:
        server = world.server()
        for _ in range(2):
            async with sdk_connections(oauth=world.again()) as connections:
                await who_am_i(connections, server)
        assert world.authorization.asked == {"client_credentials": 1}
        assert world.protected.refused == 1  # the very first request, to learn what the server wants


async def test_a_token_is_renewed_ahead_of_its_end_by_one_request_for_all_who_need_it() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(max_concurrency=20)
        await who_am_i(connections, server)
        world.clock.advance(3600 - 59)
        world.authorization.gate = asyncio.Event()
        calls = [asyncio.create_task(who_am_i(connections, server)) for _ in range(10)]
        await until(lambda: world.authorization.waiting)
        calls[0].cancel()  # whoever began it may go; the others get the token all the same
        world.authorization.gate.set()
        tokens = await asyncio.gather(*calls[1:])
        assert set(tokens) == {"access-token-2"}
        assert world.authorization.asked == {"client_credentials": 2}
        assert world.protected.refused == 1


async def test_a_token_that_ends_in_the_middle_is_replaced_and_the_call_carried_out_once() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server()
        await who_am_i(connections, server)
        world.authorization.withdraw_access()
        tokens = await asyncio.gather(*(who_am_i(connections, server) for _ in range(5)))
        assert set(tokens) == {"access-token-2"}
        assert world.protected.calls == 6
        assert world.authorization.asked == {"client_credentials": 2}


async def test_a_renewal_that_fails_ahead_of_the_end_leaves_the_token_in_use() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server()
        await who_am_i(connections, server)
        world.clock.advance(3600 - 30)
        world.authorization.metadata["token_endpoint"] = f"{world.authorization.url}/nowhere"
        for key, grant in world.store.grants.items():
            world.store.grants[key] = replace(grant, token_endpoint=f"{world.authorization.url}/nowhere")
        async with sdk_connections(oauth=world.again()) as later:
            assert await who_am_i(later, server) == "access-token-1"


async def test_a_server_that_takes_no_token_at_all_is_asked_twice_and_needs_auth() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server()
        world.protected.url += "/elsewhere"  # tokens are for another resource than the server accepts
        world.protected.resource_metadata["resource"] = server.config.url
        failure = await failure_of(connections, server)
        assert failure.kind is McpFailureKind.NEEDS_AUTH
        assert connections.status(server).state is ServerState.NEEDS_AUTH
        assert world.protected.refused == 2


async def test_a_client_that_is_refused_needs_auth_and_the_reason_is_said() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(replace(CREDENTIALS, client_secret="wrong"))
        failure = await failure_of(connections, server)
        assert failure.kind is McpFailureKind.NEEDS_AUTH
        assert "invalid_client" in failure.detail
        assert connections.status(server).state is ServerState.NEEDS_AUTH
        assert connections.status(server).last_error == failure.detail


async def test_a_server_that_wants_more_rights_gets_a_token_with_them() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(replace(CREDENTIALS, scopes=("read",)))
        world.protected.wants_scope = "write"
        assert await who_am_i(connections, server) == "access-token-2"
        assert [form["scope"] for form in world.authorization.forms] == ["read", "read write"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"issuer": "https://elsewhere.example.org"}, "another issuer"),
        ({"token_endpoint": None}, "has no metadata"),
        ({"token_endpoint": "http://10.0.0.1/token"}, "is not public"),
        ({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}, "takes no client secrets"),
    ],
)
async def test_an_authorization_server_that_cannot_be_trusted_or_used_is_not(
    wrong: dict[str, object], said: str
) -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        world.authorization.metadata = wrong
        server = world.server()
        failure = await failure_of(connections, server)
        assert failure.kind is McpFailureKind.NOT_CONNECTED
        assert said in failure.detail
        assert connections.status(server).state is ServerState.ERROR
        assert world.authorization.forms == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"resource": "https://other.example.org/mcp"}, "another resource"),
        ({"authorization_servers": ["http://169.254.169.254/"]}, "is not public"),
        ({"authorization_servers": []}, "has no metadata"),
    ],
)
async def test_metadata_of_the_server_that_leads_astray_is_not_followed(wrong: dict[str, object], said: str) -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        world.protected.resource_metadata = wrong
        failure = await failure_of(connections, world.server())
        assert failure.kind is McpFailureKind.NOT_CONNECTED
        assert said in failure.detail
        assert world.authorization.forms == []


async def test_a_fixed_issuer_is_the_only_one_asked() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        fixed = world.server(replace(CREDENTIALS, issuer=world.authorization.url))
        assert await who_am_i(connections, fixed) == "access-token-1"
        other = McpServerId(numbered("mcp", 9))
        elsewhere = world.server(replace(CREDENTIALS, issuer="https://elsewhere.example.org"), id=other)
        assert "auth.issuer" in (await failure_of(connections, elsewhere)).detail


async def test_a_server_that_turns_to_another_authorization_server_does_not_get_the_client_secret_there() -> None:
    async with oauth_world() as world, oauth_world() as impostor, sdk_connections(oauth=world.oauth) as connections:
        server = world.server()
        await who_am_i(connections, server)
        world.authorization.withdraw_access()
        world.protected.resource_metadata["authorization_servers"] = [impostor.authorization.url]
        failure = await failure_of(connections, server)
        assert "another authorization server than before" in failure.detail
        assert impostor.authorization.forms == []


async def test_an_issuer_with_a_path_is_found() -> None:
    async with oauth_world(under="/tenant") as world:
        base = world.authorization.url.removesuffix("/tenant")
        world.authorization.metadata["token_endpoint"] = f"{base}/token"
        async with sdk_connections(oauth=world.oauth) as connections:
            assert await who_am_i(connections, world.server()) == "access-token-1"


async def test_a_person_authorizes_once_and_runs_use_it_from_then_on() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(BY_PERSON)
        before = await failure_of(connections, server)
        assert before.kind is McpFailureKind.NEEDS_AUTH
        assert connections.status(server).state is ServerState.NEEDS_AUTH
        assert world.protected.refused == 0

        await authorized(world, server)
        await connections.forget(ORG, server.id)

        assert await who_am_i(connections, server) == "access-token-1"
        assert connections.status(server).state is ServerState.CONNECTED
        assert [document["redirect_uris"] for document in world.authorization.registered] == [
            ["http://127.0.0.1:8321/oauth/callback"]
        ]


async def test_a_refresh_token_is_replaced_and_the_newest_one_survives_a_restart() -> None:
    async with oauth_world() as world:
        server = world.server(BY_PERSON)
        await authorized(world, server)
        for number in (2, 3):
            world.clock.advance(3600)
            async with sdk_connections(oauth=world.again()) as connections:
                assert await who_am_i(connections, server) == f"access-token-{number}"
        assert world.authorization.asked == {"authorization_code": 1, "refresh_token": 2}


async def test_a_refresh_token_that_is_not_replaced_is_used_again() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(BY_PERSON)
        world.authorization.replaces_refresh_tokens = False
        await authorized(world, server)
        for number in (2, 3):
            world.clock.advance(3600)
            assert await who_am_i(connections, server) == f"access-token-{number}"


async def test_a_refresh_token_that_was_revoked_needs_auth_and_is_not_tried_again() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(BY_PERSON)
        await authorized(world, server)
        await who_am_i(connections, server)
        world.authorization.withdraw_access()
        world.authorization.refresh_tokens.clear()

        for _ in range(2):
            failure = await failure_of(connections, server)
            assert failure.kind is McpFailureKind.NEEDS_AUTH
            assert "withdrawn" in failure.detail
        assert connections.status(server).state is ServerState.NEEDS_AUTH
        assert world.authorization.asked == {"authorization_code": 1, "refresh_token": 1}

        await authorized(world, server)
        await connections.forget(ORG, server.id)
        assert await who_am_i(connections, server) == "access-token-3"


async def test_tokens_are_for_one_configuration_and_go_nowhere_else() -> None:
    async with oauth_world() as world, oauth_world() as elsewhere, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(BY_PERSON)
        await authorized(world, server)
        moved = replace(server, version=2, config=replace(server.config, url=elsewhere.protected.url))
        world.state.servers[server.id] = moved
        assert (await failure_of(connections, moved)).kind is McpFailureKind.NEEDS_AUTH
        assert elsewhere.protected.refused == 0


async def test_a_test_of_a_saved_server_uses_its_authorization() -> None:
    async with oauth_world() as world, sdk_connections(oauth=world.oauth) as connections:
        server = world.server(BY_PERSON)
        await authorized(world, server)
        probe = replace(server, id=McpServerId(numbered("mcp", 7)), tested_id=server.id)
        assert (await connections.discover(probe, IN_RUN, timeout_s=60)).tools[0].name == "whoami"


@pytest.mark.parametrize("auth", [BearerAuth(token="fixed-token-1"), BearerAuth(token=SecretRef("FIXED"))])
async def test_a_bearer_token_is_sent_as_it_is(auth: BearerAuth) -> None:
    async with oauth_world() as world:
        secret = Secret(organization_id=ORG, name="FIXED", created_at=START, updated_at=START)
        await world.secrets.put(secret, "fixed-token-1", an_audit_event())
        server = world.server(auth)
        world.authorization.access_tokens["fixed-token-1"] = world.protected.url
        async with sdk_connections(secrets=world.secrets, redactor=world.redactor) as connections:
            assert await who_am_i(connections, server) == REDACTED  # it told the token that it was given
        assert (world.protected.calls, world.protected.refused) == (1, 0)
        assert world.redactor.redact("fixed-token-1") == REDACTED


async def test_a_fixed_key_that_the_server_refuses_needs_auth() -> None:
    async with oauth_world() as world, sdk_connections(secrets=world.secrets) as connections:
        server = world.server(ApiKeyAuth(header="X-Api-Key", value="some-key"))
        assert (await failure_of(connections, server)).kind is McpFailureKind.NEEDS_AUTH
        assert connections.status(server).state is ServerState.NEEDS_AUTH


async def test_a_preregistered_client_is_used_as_it_is() -> None:
    async with oauth_world() as world:
        server = world.server(AuthorizationCodeAuth(client_id=CLIENT, client_secret=SECRET))
        await authorized(world, server)
        assert world.authorization.registered == []
        grant = next(iter(world.store.grants.values()))
        assert (grant.client.client_id, grant.client.secret) == (CLIENT, None)
