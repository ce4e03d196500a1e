"""DescribeOAuthClient: what Dragoman publishes about itself as an OAuth client."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.oauth_client import DescribeOAuthClient, PublicAddress
from tests.refusals import refused


@pytest.fixture
def address(mocker: MockerFixture) -> MockType:
    """Mock of the public address of the service."""
    address: MockType = mocker.create_autospec(PublicAddress, instance=True)
    address.url = "https://dragoman.example"
    return address


@pytest.mark.requirement("B12")
async def test_the_document_is_named_by_its_own_url_and_sends_people_back_here(address: MockType) -> None:
    assert await DescribeOAuthClient(address=address).execute() == {
        "client_id": "https://dragoman.example/oauth/client.json",
        "client_name": "Dragoman",
        "redirect_uris": ["https://dragoman.example/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_a_service_on_this_machine_is_a_native_application(address: MockType, host: str) -> None:
    address.url = f"http://{host}:8000"
    assert (await DescribeOAuthClient(address=address).execute())["application_type"] == "native"


async def test_a_service_that_listens_nowhere_has_no_document(address: MockType) -> None:
    address.url = None

    with refused("not_listening"):
        await DescribeOAuthClient(address=address).execute()
