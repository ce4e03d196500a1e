"""BeginSignIn: what the browser takes to the identity provider."""

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_mock import MockerFixture

from application.identity.begin_sign_in import BeginSignIn, BeginSignInCommand
from domain.ids import IdentityProviderId
from tests.builders import after
from tests.people_builders import PROVIDER
from tests.refusals import refused
from tests.unit.application.identity.sign_ins import CALLBACK, Ports


@pytest.mark.requirement("P1")
async def test_each_sign_in_has_its_own_state_nonce_and_challenge(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    begin = BeginSignIn(identity_providers=ports.providers, client=ports.client, clock=ports.clock)
    command = BeginSignInCommand(provider_id=PROVIDER, redirect_uri=CALLBACK)
    first, second = await begin.execute(command), await begin.execute(command)

    parts = urlsplit(first.url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    digest = hashlib.sha256(first.pending.verifier.encode()).digest()
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == "https://login.example.com/auth"
    assert query == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "dragoman",
        "redirect_uri": CALLBACK,
        "scope": "openid profile email",
        "state": first.pending.state,
        "nonce": first.pending.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    assert first.pending.expires_at == after(600)
    secrets = {first.pending.state, first.pending.nonce, first.pending.verifier}
    assert not secrets & {second.pending.state, second.pending.nonce, second.pending.verifier}
    assert all(secret not in repr(first) for secret in secrets)


async def test_a_deleted_identity_provider_is_not_found(mocker: MockerFixture) -> None:
    ports = Ports(mocker)
    begin = BeginSignIn(identity_providers=ports.providers, client=ports.client, clock=ports.clock)
    with refused("identity_provider_not_found"):
        await begin.execute(BeginSignInCommand(provider_id=IdentityProviderId("idp_x"), redirect_uri=CALLBACK))
