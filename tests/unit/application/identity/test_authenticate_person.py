"""AuthenticatePerson: which tokens are a person's, and for how long."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.admit_person import AdmitPerson
from application.identity.admit_person import refused as refusal
from application.identity.authenticate_person import (
    MAX_TOKEN,
    AuthenticatePerson,
    AuthenticatePersonCommand,
    invalid_token,
)
from application.identity.key_limits import KeyLimits
from application.identity.ports import IdentityProviderDirectory, TokenVerifier, VerifiedToken
from application.identity.token_cache import TokenCache
from application.system.rates import LocalRates
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.identity_provider import IdentityProvider
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId, IdentityProviderId
from domain.rate_limit import RateLimit
from tests.builders import ORG, after, an_organization, numbered
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.people_builders import ISSUER, USER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.team_ports import caller_teams

TOKEN = "eyJ.eyJ.sig"
OTHER = a_provider(IdentityProviderId(numbered("idp", 2)), name="other", client_id="other")


class Ports:
    """One provider, whose tokens are valid for a minute."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.providers: MockType = mocker.create_autospec(IdentityProviderDirectory, instance=True)
        self.providers.of_issuer.return_value = (OTHER, a_provider())
        self.tokens: MockType = mocker.create_autospec(TokenVerifier, instance=True)
        self.tokens.issuer_of.return_value = ISSUER
        self.tokens.verify.side_effect = self._verify
        self.admit: MockType = mocker.create_autospec(AdmitPerson, instance=True)
        self.admit.execute.return_value = a_user()
        self.state = InMemoryState()
        self.cache = TokenCache(capacity=4)
        self.clock = FixedClock()
        self.limit(None)

    def limit(self, every: RateLimit | None) -> None:
        self.authenticate = AuthenticatePerson(
            identity_providers=self.providers,
            tokens=self.tokens,
            admit_person=self.admit,
            custom_roles=InMemoryCustomRoleStore(self.state),
            cache=self.cache,
            caller_teams=caller_teams(self.state),
            limits=KeyLimits(
                every=every,
                rates=LocalRates(clock=self.clock),
                organizations=InMemoryOrganizationStore(self.state),
            ),
            clock=self.clock,
        )

    async def principal_of(self, token: str = TOKEN) -> Principal:
        return await self.authenticate.execute(AuthenticatePersonCommand(token=token))

    async def _verify(self, provider: IdentityProvider, _: str) -> VerifiedToken:
        if provider == OTHER:
            raise invalid_token()
        return VerifiedToken(
            claims={"sub": "ann", "aud": ["dragoman", "https://dragoman.example/mcp"]}, expires_at=after(60)
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("P1")
async def test_a_token_stands_for_the_user_until_it_expires(ports: Ports) -> None:
    principal = await ports.principal_of()

    assert principal == a_user().principal(after(60))
    assert (principal.organization_id, str(principal.key_id), principal.platform) == (ORG, USER, False)
    ports.clock.advance(59)
    assert await ports.principal_of() == principal
    ports.tokens.verify.assert_awaited()
    ports.clock.advance(1)
    with refused("token_invalid"):
        await ports.principal_of()


@pytest.mark.requirement("P1")
async def test_a_checked_token_is_not_checked_again_until_its_user_changes(ports: Ports) -> None:
    await ports.principal_of()
    await ports.principal_of("eyJ.eyJ.second")
    await ports.principal_of()
    assert ports.admit.execute.await_count == 2

    ports.admit.execute.side_effect = refusal("Your access has ended.")
    ports.cache.forget(ApiKeyId(USER))
    for token in (TOKEN, "eyJ.eyJ.second"):
        with refused("sign_in_refused"):
            await ports.principal_of(token)


@pytest.mark.requirement("P1")
async def test_a_user_who_is_removed_during_the_check_is_not_cached(ports: Ports) -> None:
    async def removed_meanwhile(_: object) -> object:
        ports.cache.forget(ApiKeyId(USER))
        return a_user()

    ports.admit.execute.side_effect = removed_meanwhile
    await ports.principal_of()
    await ports.principal_of()
    assert ports.admit.execute.await_count == 2


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("token", ["", "sk-other", "a.b", "a.b.c.d", f"{'x' * MAX_TOKEN}.b.c"])
async def test_what_is_not_a_signed_token_is_refused_without_a_look_at_it(ports: Ports, token: str) -> None:
    with refused("token_invalid"):
        await ports.principal_of(token)
    ports.tokens.issuer_of.assert_not_awaited()


@pytest.mark.requirement("P1")
async def test_a_token_of_an_unknown_issuer_is_refused(ports: Ports) -> None:
    ports.tokens.issuer_of.return_value = None
    with refused("token_invalid"):
        await ports.principal_of()
    ports.tokens.issuer_of.return_value = "https://evil.example"
    ports.providers.of_issuer.return_value = ()
    with refused("token_invalid"):
        await ports.principal_of()
    ports.admit.execute.assert_not_awaited()


async def test_the_limit_of_the_service_applies_to_each_user(ports: Ports) -> None:
    ports.limit(RateLimit(calls=1, per_s=60))
    await ports.principal_of()
    with refused("rate_limited"):
        await ports.principal_of("eyJ.eyJ.second")


@pytest.mark.requirement("P5")
async def test_a_token_for_another_audience_than_the_wanted_one_is_refused_also_when_it_is_known(ports: Ports) -> None:
    async def principal_for(audience: str) -> Principal:
        return await ports.authenticate.execute(AuthenticatePersonCommand(token=TOKEN, audience=audience))

    await principal_for("https://dragoman.example/mcp")
    with refused("token_invalid"):
        await principal_for("https://dragoman.example")
    ports.tokens.verify.reset_mock()
    await principal_for("dragoman")
    ports.tokens.verify.assert_not_awaited()


@pytest.mark.requirement("P2")
async def test_the_organizations_limit_applies_to_all_tokens_of_a_user_together(ports: Ports) -> None:
    limits = UserLimits(rate_limit=RateLimit(calls=2, per_s=60))
    ports.state.organizations[ORG] = replace(an_organization(), user_limits=limits)
    await ports.principal_of()
    await ports.principal_of("eyJ.eyJ.second")
    with pytest.raises(ServiceError) as refused_:
        await ports.principal_of()
    assert (refused_.value.code, refused_.value.extra) == ("rate_limited", {"retry_after_s": "30"})
    ports.clock.advance(30)
    await ports.principal_of()
