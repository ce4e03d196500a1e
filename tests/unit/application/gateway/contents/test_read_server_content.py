"""ReadServerContent: a resource or prompt of one server, for a person, in their session with an
agent."""

from collections.abc import Mapping

import pytest
from pytest_mock import MockerFixture

from application.gateway.contents.read_content import ReadGatewayContent, ReadGatewayContentCommand
from application.gateway.contents.read_server_content import ReadServerContent, ReadServerContentCommand
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.contents import ContentMethod
from application.mcp.ports import McpServerStore
from domain.identity.role import Role
from domain.json_value import JsonObject
from tests.builders import a_server
from tests.gateway_builders import a_gateway_session
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6", "F5")
RUNNER = a_principal(Role.RUNNER)
SESSION = a_gateway_session()
RESOURCE = ReadServerContentCommand(principal=RUNNER, server="files", agent="guide", uri="file:///a")
PROMPT = ReadServerContentCommand(
    principal=RUNNER, server="files", agent="guide", name="greet", arguments={"who": "Ada"}
)


@pytest.mark.parametrize(
    ("command", "method", "params"),
    [
        (RESOURCE, ContentMethod.READ_RESOURCE, {"uri": "mcp+files:file:///a"}),
        (PROMPT, ContentMethod.GET_PROMPT, {"name": "mcp__files__greet", "arguments": {"who": "Ada"}}),
    ],
    ids=["resource", "prompt"],
)
async def test_it_is_read_in_the_session_of_the_person_under_the_name_of_the_gateway(
    mocker: MockerFixture, command: ReadServerContentCommand, method: ContentMethod, params: JsonObject
) -> None:
    answer: Mapping[str, object] = {"contents": []}
    access = mocker.create_autospec(GatewayAccess, instance=True)
    access.of_principal.return_value = SESSION
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = a_server(slug="files")
    reading = mocker.create_autospec(ReadGatewayContent, instance=True)
    reading.execute.return_value = answer

    assert await ReadServerContent(access=access, servers=servers, reading=reading).execute(command) is answer

    access.of_principal.assert_awaited_once_with(RUNNER, "guide")
    reading.execute.assert_awaited_once_with(ReadGatewayContentCommand(session=SESSION, method=method, params=params))


@pytest.mark.parametrize(("role", "code"), [(Role.VIEWER, "role_insufficient"), (Role.RUNNER, "mcp_server_not_found")])
async def test_without_the_role_or_the_server_nothing_is_read(mocker: MockerFixture, role: Role, code: str) -> None:
    access = mocker.create_autospec(GatewayAccess, instance=True)
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = None
    reading = mocker.create_autospec(ReadGatewayContent, instance=True)
    command = ReadServerContentCommand(principal=a_principal(role), server="files", agent="guide", uri="file:///a")
    with refused(code):
        await ReadServerContent(access=access, servers=servers, reading=reading).execute(command)
    access.of_principal.assert_not_awaited()
    reading.execute.assert_not_awaited()
