"""KeyUses: a use that could not be stored is kept until it can be."""

from pytest_mock import MockerFixture

from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore
from domain.ids import ApiKeyId
from tests.builders import after


async def test_uses_that_could_not_be_stored_stay_noted_unless_later_ones_came(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    uses = KeyUses(identities=identities)
    early, late = ApiKeyId("key_early"), ApiKeyId("key_late")
    uses.note(early, after(1))
    uses.note(late, after(1))

    async def fails_while_a_key_is_used(_: object) -> None:
        uses.note(late, after(2))
        raise RuntimeError

    identities.record_uses.side_effect = fails_while_a_key_is_used
    await uses.settle()
    identities.record_uses.side_effect = None

    await uses.settle()

    identities.record_uses.assert_awaited_with({early: after(1), late: after(2)})


async def test_without_uses_nothing_is_stored(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)

    await KeyUses(identities=identities).store()

    identities.record_uses.assert_not_awaited()
