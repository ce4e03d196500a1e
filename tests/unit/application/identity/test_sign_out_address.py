"""SignOutAddress: where a browser signs out of its identity provider."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_mock import MockerFixture

from application.identity.sign_out_address import SignOutAddress, SignOutAddressCommand
from domain.errors import ErrorKind, ServiceError
from tests.people_builders import ISSUER, PROVIDER
from tests.unit.application.identity.sign_ins import Ports

COMMAND = SignOutAddressCommand(provider_id=PROVIDER, return_to="https://dragoman.example.com/console/sign-in")


@pytest.mark.requirement("P1")
async def test_a_provider_with_a_sign_out_page_sends_the_browser_back(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    ports.offers(end_session_endpoint=f"{ISSUER}/logout?tenant=1")
    address = SignOutAddress(identity_providers=ports.providers, client=ports.client)
    url = await address.execute(COMMAND)
    assert url is not None
    assert url.startswith(f"{ISSUER}/logout?")
    assert parse_qs(urlsplit(url).query) == {
        "tenant": ["1"],
        "client_id": ["dragoman"],
        "post_logout_redirect_uri": [COMMAND.return_to],
    }


@pytest.mark.requirement("P1")
async def test_signing_out_here_does_not_depend_on_the_provider(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    address = SignOutAddress(identity_providers=ports.providers, client=ports.client)
    assert await address.execute(COMMAND) is None
    ports.client.metadata.side_effect = ServiceError("identity_provider_unavailable", ErrorKind.UNAVAILABLE, "Away.")
    assert await address.execute(COMMAND) is None
    ports.state.identity_providers.clear()
    assert await address.execute(COMMAND) is None


async def test_signing_out_here_does_not_wait_for_a_silent_provider(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    mocker.patch("application.identity.sign_out_address.WAIT_S", 0)
    ports.client.metadata.side_effect = _never
    address = SignOutAddress(identity_providers=ports.providers, client=ports.client)
    assert await address.execute(COMMAND) is None


async def _never(_: object) -> None:
    await asyncio.Event().wait()
