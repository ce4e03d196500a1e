"""FinishSignIn: which browsers that come back are signed in."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.admit_person import AdmitPerson, AdmitPersonCommand
from application.identity.admit_person import refused as not_admitted_because
from application.identity.finish_sign_in import FinishSignIn, FinishSignInCommand
from application.identity.ports import FinishedSignIn, SignInListener, TokenVerifier, VerifiedToken
from domain.identity.user import User
from tests.builders import after
from tests.people_builders import ISSUER, a_provider, a_user
from tests.refusals import refused
from tests.unit.application.identity.sign_ins import CALLBACK, TOKENS, Ports, a_pending

GOOD = FinishSignInCommand(pending=a_pending(), state="state", code="code")


class Finishing(Ports):
    def __init__(self, mocker: MockerFixture) -> None:
        super().__init__(mocker)
        self.tokens: MockType = mocker.create_autospec(TokenVerifier, instance=True)
        self.tokens.verify.return_value = VerifiedToken(claims={"sub": "ann"}, expires_at=after(60))
        self.admit: MockType = mocker.create_autospec(AdmitPerson, instance=True)
        self.admit.execute.return_value = a_user()
        self.listener: MockType = mocker.create_autospec(SignInListener, instance=True)
        self._finish = FinishSignIn(
            identity_providers=self.providers,
            client=self.client,
            tokens=self.tokens,
            admit_person=self.admit,
            listener=self.listener,
            clock=self.clock,
        )

    async def finish(self, command: FinishSignInCommand) -> User:
        return await self._finish.execute(command)

    async def refuse(self, command: FinishSignInCommand) -> None:
        with refused("sign_in_refused"):
            await self.finish(command)
        self.client.redeem.assert_not_awaited()
        self.admit.execute.assert_not_awaited()
        self.listener.signed_in.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Finishing:
    return Finishing(mocker)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("issuer", [None, ISSUER])
async def test_the_browser_that_was_sent_comes_back_as_its_user(ports: Finishing, issuer: str | None) -> None:
    assert await ports.finish(replace(GOOD, issuer=issuer)) == a_user()
    ports.client.redeem.assert_awaited_once_with(a_provider(), "code", redirect_uri=CALLBACK, verifier="v")
    ports.tokens.verify.assert_awaited_once_with(a_provider(), "id.token.sig", nonce="nonce")
    ports.admit.execute.assert_awaited_once_with(
        AdmitPersonCommand(provider=a_provider(), claims={"sub": "ann"}, signs_in=True)
    )
    ports.listener.signed_in.assert_awaited_once_with(
        FinishedSignIn(user=a_user(), provider=a_provider(), tokens=TOKENS, id_token_expires_at=after(60))
    )


@pytest.mark.requirement("P4")
async def test_tokens_of_a_person_who_is_not_admitted_go_nowhere(ports: Finishing) -> None:
    ports.admit.execute.side_effect = not_admitted_because("No rule admits this person.")
    with refused("sign_in_refused"):
        await ports.finish(GOOD)
    ports.listener.signed_in.assert_not_awaited()


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    "command", [replace(GOOD, pending=None), replace(GOOD, state="x"), replace(GOOD, state="\udcff")]
)
async def test_a_browser_that_began_nothing_or_something_else_is_refused(
    ports: Finishing, command: FinishSignInCommand
) -> None:
    await ports.refuse(command)
    ports.client.metadata.assert_not_awaited()


@pytest.mark.requirement("P1")
async def test_an_answer_after_ten_minutes_is_refused(ports: Finishing) -> None:
    ports.clock.advance(600)
    await ports.refuse(GOOD)


@pytest.mark.requirement("P1")
async def test_an_answer_of_another_issuer_is_refused(ports: Finishing) -> None:
    await ports.refuse(replace(GOOD, issuer="https://evil.example"))
    ports.offers(names_itself_in_answers=True)
    await ports.refuse(GOOD)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("command", [replace(GOOD, error="access_denied"), replace(GOOD, code=None)])
async def test_an_answer_without_a_code_is_refused(ports: Finishing, command: FinishSignInCommand) -> None:
    await ports.refuse(command)


async def test_an_answer_of_a_provider_that_was_deleted_meanwhile_is_refused(ports: Finishing) -> None:
    ports.state.identity_providers.clear()
    await ports.refuse(GOOD)
