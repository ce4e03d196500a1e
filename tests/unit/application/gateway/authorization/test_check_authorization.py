"""CheckAuthorization: which requests of clients a person is shown."""

from dataclasses import replace

import pytest

from application.gateway.authorization.check_authorization import (
    MAX_QUERY,
    CheckAuthorization,
    CheckAuthorizationCommand,
    organization_of,
)
from domain.identity.role import Role
from tests.gateway_builders import CALLBACK, CHALLENGE, RESOURCE
from tests.people_builders import an_impersonation
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.gateway.authorization.scene import DOCUMENT, Scene, a_person, a_query, asked

pytestmark = pytest.mark.requirement("P5")

GATEWAY = "https://dragoman.example/mcp"


async def test_a_valid_request_names_client_agent_and_where_the_answer_goes(scene: Scene) -> None:
    await scene.with_agent()
    check = CheckAuthorization(find_client=scene.find_client, agents=scene.agents, address=scene.address)
    found = await check.execute(asked())
    assert (found.client.name, found.client.host) == ("Editor", "client.example")
    assert found.agent is not None
    assert found.agent.config.name == "researcher"
    assert (found.resource, found.challenge) == (RESOURCE, CHALLENGE)
    answer = "code=c&state=state-of-the-client&iss=https%3A%2F%2Fdragoman.example"
    assert found.answer(code="c") == f"{CALLBACK}?{answer}"


async def test_the_person_chooses_an_agent_that_the_resource_does_not_name(scene: Scene) -> None:
    await scene.with_agent()
    assert (await scene.check.execute(asked(resource=GATEWAY))).agent is None
    assert (await scene.check.execute(asked(resource=None))).resource == GATEWAY
    chosen = (await scene.check.execute(asked(resource=GATEWAY, agent="researcher"))).agent
    assert chosen is not None
    with refused("agent_not_found"):
        await scene.check.execute(asked(resource=f"{GATEWAY}?agent=another", agent="researcher"))


async def test_an_api_key_and_a_viewer_grant_nothing(scene: Scene) -> None:
    with refused("person_required"):
        await scene.check.execute(asked(a_principal(Role.ADMIN)))
    with refused("role_insufficient"):
        await scene.check.execute(asked(a_person(Role.VIEWER)))
    scene.documents.read.assert_not_awaited()


@pytest.mark.requirement("P7")
async def test_nothing_is_granted_in_the_name_of_another_person(scene: Scene) -> None:
    acting = replace(a_person(Role.RUNNER), impersonation_id=an_impersonation().id)
    with refused("impersonation_refused"):
        await scene.check.execute(asked(acting))
    scene.documents.read.assert_not_awaited()


async def test_a_disabled_agent_is_not_granted(scene: Scene) -> None:
    await scene.with_agent(enabled=False)
    with refused("agent_disabled"):
        await scene.check.execute(asked())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"client_id": None}, "invalid_client"),
        ({"client_id": "unknown"}, "invalid_client"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:1/callback/../evil"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": f"{GATEWAY}.evil.example"}, "invalid_target"),
        ({"resource": "https://dragoman.example/"}, "invalid_target"),
        ({"state": "s" * 1_001}, "invalid_request"),
        ({"state": "s" * MAX_QUERY}, "invalid_request"),
    ],
)
async def test_a_faulty_request_is_refused(scene: Scene, changes: dict[str, str | None], code: str) -> None:
    await scene.with_agent()
    with refused(code):
        await scene.check.execute(CheckAuthorizationCommand(principal=a_person(), query=a_query(**changes)))


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "resource", "code_challenge", "response_type"])
async def test_a_parameter_that_comes_twice_is_refused(scene: Scene, name: str) -> None:
    await scene.with_agent()
    command = asked()
    twice = f"{command.query}&{name}=another"
    with refused("invalid_request"):
        await scene.check.execute(type(command)(principal=command.principal, query=twice))


def test_the_resource_names_whose_identity_providers_are_offered() -> None:
    assert organization_of(a_query(resource=f"{GATEWAY}?organization=org_1&agent=a")) == "org_1"
    assert organization_of(a_query()) is None
    assert organization_of(a_query(resource="https://[")) is None


async def test_an_answer_keeps_the_query_of_the_redirect_uri(scene: Scene) -> None:
    scene.documents.read.return_value = {**DOCUMENT, "redirect_uris": ["https://client.example/back?from=here"]}
    await scene.with_agent()
    found = await scene.check.execute(asked(redirect_uri="https://client.example/back?from=here", state=None))
    assert found.answer(error="access_denied") == (
        "https://client.example/back?from=here&error=access_denied&iss=https%3A%2F%2Fdragoman.example"
    )


async def test_nothing_is_granted_here_where_another_authorization_server_does(scene: Scene) -> None:
    check = CheckAuthorization(
        find_client=scene.find_client, agents=scene.agents, address=scene.address, external="https://login.example.com"
    )
    with refused("authorization_elsewhere"):
        await check.execute(asked())
