"""The authorization code flow: what is sent away with a person, and which answers are taken."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from application.mcp.authorization import AuthorizationAnswer
from domain.errors import ErrorKind, ServiceError
from domain.mcp.auth import AuthorizationCodeAuth, BearerAuth
from domain.mcp.server import McpServer
from tests.builders import KEY, ORG
from tests.integration.mcp.oauth_world import BY_PERSON, CALLBACK, CLIENT, SECRET, World, oauth_world

pytestmark = pytest.mark.requirement("B12")


def asked(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def begun(world: World, server: McpServer | None = None) -> str:
    """The address a person is sent to."""
    return (await world.oauth.authorizer.begin(server or world.server(BY_PERSON), KEY)).url


def answer_to(world: World, url: str, **changes: Any) -> AuthorizationAnswer:
    """What comes back if the person agrees."""
    back = world.authorization.authorize(url)
    return replace(AuthorizationAnswer(state=back["state"], code=back["code"], issuer=back["iss"]), **changes)


async def refusal_of(world: World, answer: AuthorizationAnswer) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        await world.oauth.authorizer.complete(answer)
    assert not [grant for grant in world.store.grants.values() if grant.access_token is not None]
    return refused.value


async def test_a_person_is_sent_with_everything_the_specification_asks_for_and_no_secret() -> None:
    async with oauth_world() as world:
        world.authorization.metadata["scopes_supported"] = ["read", "offline_access"]
        world.protected.resource_metadata["scopes_supported"] = ["read"]
        server = world.server(AuthorizationCodeAuth(client_id=CLIENT, client_secret=SECRET))
        url = await begun(world, server)
    parameters = asked(url)
    assert parameters.keys() == {
        *("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method"),
        *("resource", "scope"),
    }
    assert (parameters["client_id"], parameters["redirect_uri"]) == (CLIENT, CALLBACK)
    assert parameters["resource"] == world.protected.url
    assert parameters["scope"] == "read offline_access"
    assert len(parameters["state"]) >= 43
    assert SECRET not in url


async def test_two_authorizations_share_neither_state_nor_challenge() -> None:
    async with oauth_world() as world:
        server = world.server(BY_PERSON)
        first, second = asked(await begun(world, server)), asked(await begun(world, server))
    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]


async def test_parameters_of_the_authorization_endpoint_itself_are_kept() -> None:
    async with oauth_world() as world:
        world.authorization.metadata["authorization_endpoint"] = f"{world.authorization.url}/authorize?tenant=a%26b"
        assert asked(await begun(world))["tenant"] == "a&b"


async def test_an_answer_counts_once() -> None:
    async with oauth_world() as world:
        url = await begun(world)
        answer = answer_to(world, url)
        completed = await world.oauth.authorizer.complete(answer)
        assert (completed.server.organization_id, completed.key_id) == (ORG, KEY)
        with pytest.raises(ServiceError) as again:
            await world.oauth.authorizer.complete(answer)
        assert again.value.code == "authorization_unknown"


async def test_of_answers_that_come_at_the_same_time_one_counts() -> None:
    async with oauth_world() as world:
        answer = answer_to(world, await begun(world))
        outcomes = await asyncio.gather(
            *(world.oauth.authorizer.complete(answer) for _ in range(5)), return_exceptions=True
        )
        assert len([outcome for outcome in outcomes if isinstance(outcome, ServiceError)]) == 4
        assert world.authorization.asked == {"authorization_code": 1}


@pytest.mark.parametrize("state", ["", "guessed", "x" * 100_000, "\ud83d"])
async def test_a_state_that_was_not_given_out_is_unknown(state: str) -> None:
    async with oauth_world() as world:
        answer = answer_to(world, await begun(world), state=state)
        refused = await refusal_of(world, answer)
        assert (refused.code, refused.kind) == ("authorization_unknown", ErrorKind.INVALID)


async def test_an_answer_that_comes_too_late_is_unknown() -> None:
    async with oauth_world() as world:
        answer = answer_to(world, await begun(world))
        world.clock.advance(timedelta(minutes=10).total_seconds())
        assert (await refusal_of(world, answer)).code == "authorization_unknown"


@pytest.mark.parametrize(
    ("announced", "issuer"),
    [(True, None), (True, "https://elsewhere.example.org"), (False, "https://elsewhere.example.org"), (True, "")],
)
async def test_an_answer_of_another_authorization_server_is_not_taken(announced: bool, issuer: str | None) -> None:
    async with oauth_world() as world:
        world.authorization.metadata["authorization_response_iss_parameter_supported"] = announced
        answer = answer_to(world, await begun(world), issuer=issuer)
        assert (await refusal_of(world, answer)).code == "authorization_mixed_up"
        assert world.authorization.forms == []


async def test_an_answer_without_an_issuer_is_taken_where_none_was_announced() -> None:
    async with oauth_world() as world:
        await world.oauth.authorizer.complete(answer_to(world, await begun(world), issuer=None))
        assert world.authorization.asked == {"authorization_code": 1}


@pytest.mark.parametrize(
    ("error", "shown"), [("access_denied", "access_denied"), ("<script>", "unknown_error"), (None, "unknown_error")]
)
async def test_a_refusal_is_told_by_its_code_alone(error: str | None, shown: str) -> None:
    async with oauth_world() as world:
        answer = answer_to(world, await begun(world), code=None, error=error)
        refused = await refusal_of(world, answer)
        assert (refused.code, refused.detail) == (
            "authorization_refused",
            f"The authorization server did not authorize ({shown}).",
        )


async def test_a_code_that_somebody_else_obtained_is_refused_for_want_of_the_verifier() -> None:
    async with oauth_world() as world:
        server = world.server(BY_PERSON)
        stolen = answer_to(world, await begun(world, server))
        mine = answer_to(world, await begun(world, server))
        refused = await refusal_of(world, replace(mine, code=stolen.code))
        assert "invalid_grant" in refused.detail


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_an_authorization_server_without_pkce_is_not_used(methods: list[str] | None) -> None:
    async with oauth_world() as world:
        world.authorization.metadata["code_challenge_methods_supported"] = methods
        with pytest.raises(ServiceError) as refused:
            await begun(world)
        assert (refused.value.code, refused.value.kind) == ("mcp_authorization_unavailable", ErrorKind.UNAVAILABLE)
        assert "PKCE" in refused.value.detail
        assert world.authorization.registered == []


@pytest.mark.requirement("B16")
@pytest.mark.parametrize("endpoint", ["registration_endpoint", "token_endpoint"])
async def test_an_endpoint_at_a_private_address_is_not_requested(endpoint: str) -> None:
    async with oauth_world() as world:
        world.authorization.metadata[endpoint] = "http://10.0.0.1/inside"
        if endpoint == "registration_endpoint":
            with pytest.raises(ServiceError) as refused:
                await begun(world)
            assert "is not public" in refused.value.detail
        else:
            answer = answer_to(world, await begun(world))
            assert "is not public" in (await refusal_of(world, answer)).detail


async def test_a_server_that_was_changed_meanwhile_is_not_given_what_was_granted_before() -> None:
    async with oauth_world() as world:
        server = world.server(BY_PERSON)
        answers = [answer_to(world, await begun(world, server)) for _ in range(3)]
        moved = replace(server.config, url="https://elsewhere.example.org/mcp")
        for config in (moved, replace(server.config, auth=BearerAuth(token="x"))):
            world.state.servers[server.id] = replace(server, config=config)
            assert (await refusal_of(world, answers.pop())).code == "authorization_outdated"
        del world.state.servers[server.id]
        assert (await refusal_of(world, answers.pop())).code == "authorization_outdated"
        assert world.authorization.forms == []


async def test_a_registration_is_made_once_and_used_for_later_authorizations() -> None:
    async with oauth_world() as world:
        server = world.server(BY_PERSON)
        for _ in range(2):
            await world.oauth.authorizer.complete(answer_to(world, await begun(world, server)))
        assert len(world.authorization.registered) == 1
        assert world.authorization.registered[0]["application_type"] == "native"
        assert next(iter(world.store.grants.values())).client.secret == "registered-secret"


async def test_where_a_client_metadata_document_is_taken_none_is_registered() -> None:
    async with oauth_world(address="https://agents.example.com") as world:
        world.authorization.metadata["client_id_metadata_document_supported"] = True
        parameters = asked(await begun(world))
        assert parameters["client_id"] == "https://agents.example.com/oauth/client.json"
        assert parameters["redirect_uri"] == "https://agents.example.com/oauth/callback"
        assert world.authorization.registered == []


async def test_where_no_client_can_be_registered_one_has_to_be_given() -> None:
    async with oauth_world() as world:
        world.authorization.metadata["registration_endpoint"] = None
        with pytest.raises(ServiceError) as refused:
            await begun(world)
        assert "auth.client_id" in refused.value.detail


async def test_more_rights_are_asked_for_together_with_those_that_were_given() -> None:
    async with oauth_world() as world:
        server = world.server(replace(BY_PERSON, scopes=("read",)))
        await world.oauth.authorizer.complete(answer_to(world, await begun(world, server)))
        credentials = world.oauth.credentials(server)
        sent = await credentials.headers()
        with pytest.raises(Exception, match="more scopes"):
            await credentials.renewed(sent, 403, ['Bearer error="insufficient_scope", scope="write"'])
        assert asked(await begun(world, server))["scope"] == "read write"


@pytest.mark.parametrize("opens_streams", [True, False])
async def test_what_a_server_wants_is_known_before_it_was_ever_called(opens_streams: bool) -> None:
    async with oauth_world() as world:
        world.protected.challenge, world.protected.opens_streams = ', scope="read"', opens_streams
        world.protected.resource_metadata["scopes_supported"] = ["everything"]
        assert asked(await begun(world))["scope"] == "read"


async def test_a_service_that_listens_nowhere_cannot_take_anybody_back() -> None:
    async with oauth_world(address="") as world:
        with pytest.raises(ServiceError) as refused:
            await begun(world)
        assert (refused.value.code, refused.value.kind) == ("not_listening", ErrorKind.CONFLICT)
