"""ConnectAccount: people connect their own account, at servers that are used with it."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.authorization import AuthorizationRequest, McpAuthorizer
from application.mcp.connect_account import ConnectAccount, ConnectAccountCommand
from domain.identity.role import Role
from domain.mcp.server import Credentials
from tests.builders import OTHER_ORG, after
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_person_server, a_state_with_servers, an_on_behalf_server
from tests.people_builders import a_person
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")

REQUEST = AuthorizationRequest(url="https://auth.example/authorize?state=s", expires_at=after(600))


@pytest.fixture
def authorizer(mocker: MockerFixture) -> MockType:
    authorizer: MockType = mocker.create_autospec(McpAuthorizer, instance=True)
    authorizer.begin.return_value = REQUEST
    return authorizer


def connecting(authorizer: MockType, credentials: Credentials = Credentials.PERSON) -> ConnectAccount:
    state = a_state_with_servers(a_person_server(credentials))
    return ConnectAccount(servers=InMemoryMcpServerStore(state), authorizer=authorizer)


@pytest.mark.parametrize("role", list(Role))
async def test_a_person_of_any_role_is_sent_away_for_their_own_account_in_this_browser(
    authorizer: MockType, role: Role
) -> None:
    person = a_person(role)
    command = ConnectAccountCommand(principal=person, server="tickets", browser="b")
    assert await connecting(authorizer).execute(command) == REQUEST
    server = a_person_server().acting_for(person.person_id)
    authorizer.begin.assert_awaited_once_with(server, person.key_id, browser="b")


async def test_a_key_has_no_account_to_connect(authorizer: MockType) -> None:
    with refused("person_required"):
        await connecting(authorizer).execute(
            ConnectAccountCommand(principal=a_principal(), server="tickets", browser="b")
        )
    authorizer.begin.assert_not_awaited()


async def test_a_server_with_an_account_of_the_organization_takes_none_of_persons(authorizer: MockType) -> None:
    command = ConnectAccountCommand(principal=a_person(), server="tickets", browser="b")
    with refused("mcp_server_auth_mismatch"):
        await connecting(authorizer, Credentials.ORGANIZATION).execute(command)


@pytest.mark.requirement("P4")
async def test_a_server_whose_account_is_the_sign_in_is_not_connected_otherwise(authorizer: MockType) -> None:
    state = a_state_with_servers(an_on_behalf_server())
    connect = ConnectAccount(servers=InMemoryMcpServerStore(state), authorizer=authorizer)
    with refused("mcp_server_auth_mismatch"):
        await connect.execute(ConnectAccountCommand(principal=a_person(), server="tickets", browser="b"))
    authorizer.begin.assert_not_awaited()


async def test_people_of_another_organization_do_not_find_the_server(authorizer: MockType) -> None:
    command = ConnectAccountCommand(principal=a_person(organization_id=OTHER_ORG), server="tickets", browser="b")
    with refused("mcp_server_not_found"):
        await connecting(authorizer).execute(command)
