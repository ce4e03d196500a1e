"""Ports of a sign-in under way, for the tests of its use cases."""

from dataclasses import replace

from pytest_mock import MockerFixture, MockType

from application.identity.begin_sign_in import PendingSignIn
from application.identity.ports import IdentityProviderClient, ProviderMetadata, SignInTokens
from tests.builders import after
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import ISSUER, PROVIDER, a_provider

METADATA = ProviderMetadata(
    issuer=ISSUER, authorization_endpoint=f"{ISSUER}/auth?tenant=1", token_endpoint=f"{ISSUER}/token"
)
TOKENS = SignInTokens(id_token="id.token.sig", access_token="access", access_token_lasts_s=60)
CALLBACK = "https://dragoman.example.com/console/sign-in/callback"


def a_pending() -> PendingSignIn:
    return PendingSignIn(
        provider_id=PROVIDER, redirect_uri=CALLBACK, state="state", nonce="nonce", verifier="v", expires_at=after(600)
    )


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        state = InMemoryState()
        state.identity_providers[PROVIDER] = a_provider()
        self.state, self.clock = state, FixedClock()
        self.providers = InMemoryIdentityProviderStore(state)
        self.client: MockType = mocker.create_autospec(IdentityProviderClient, instance=True)
        self.client.metadata.return_value = METADATA
        self.client.redeem.return_value = TOKENS

    def offers(self, **changes: object) -> None:
        self.client.metadata.return_value = replace(METADATA, **changes)  # type: ignore[arg-type]
