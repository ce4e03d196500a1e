"""CreateWebhookKey: a new signing key, how long the former one signs beside it, and what is
audited."""

from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.secrets.ports import SecretStore
from application.webhooks.create_webhook_key import CreatedWebhookKey, CreateWebhookKey
from application.webhooks.ports import WebhookKeyStore
from application.webhooks.signing_secrets import SigningSecrets
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.webhooks.signing import signing_keys
from tests.builders import ORG, OTHER_ORG, START, after
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.webhooks import InMemoryWebhookKeyStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

DAY = timedelta(days=1)


class Ports:
    """Keys in memory; the n-th secret that is made is 32 bytes of n."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.keys: WebhookKeyStore = InMemoryWebhookKeyStore(self.state)
        self.secrets: MockType = mocker.create_autospec(SecretStore, instance=True)
        self.clock = FixedClock()
        self._ids = SequentialIds()
        self._made = 0

    async def create(self, principal: Principal | None = None) -> CreatedWebhookKey:
        secrets = SigningSecrets(
            secrets=self.secrets, keys=self.keys, clock=self.clock, ids=self._ids, random=self._random
        )
        creating = CreateWebhookKey(keys=self.keys, secrets=secrets, clock=self.clock, ids=self._ids)
        return await creating.execute(principal or a_principal())

    def _random(self, count: int) -> bytes:
        self._made += 1
        return bytes([self._made]) * count


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("E7")
async def test_the_first_key_signs_at_once_and_has_no_former_one_beside_it(ports: Ports) -> None:
    created = await ports.create()

    assert signing_keys(created.key.secret) == (b"\1" * 32,)
    assert (created.key.organization_id, created.key.created_at, created.key.expires_at) == (ORG, START, None)
    assert created.former_signs_until is None
    assert await ports.keys.in_force(ORG, at=START) == (created.key,)


@pytest.mark.requirement("E7")
async def test_the_key_before_signs_beside_the_new_one_for_a_day(ports: Ports) -> None:
    former = (await ports.create()).key
    ports.clock.advance(60)

    created = await ports.create()

    assert created.former_signs_until == after(60) + DAY
    just_before = after(59) + DAY
    assert [key.id for key in await ports.keys.in_force(ORG, at=just_before)] == [created.key.id, former.id]
    assert await ports.keys.in_force(ORG, at=after(60) + DAY) == (created.key,)


@pytest.mark.requirement("E7")
async def test_two_new_keys_in_a_row_put_the_oldest_out_of_use(ports: Ports) -> None:
    leaked = (await ports.create()).key
    for _ in range(2):
        ports.clock.advance(1)
        await ports.create()

    in_force = [key.id for key in await ports.keys.in_force(ORG, at=after(2))]

    assert len(in_force) == 2
    assert leaked.id not in in_force


@pytest.mark.requirement("C6", "E7")
async def test_keys_of_another_organization_stay_as_they_are(ports: Ports) -> None:
    theirs = (await ports.create(a_stranger())).key

    await ports.create()

    assert await ports.keys.in_force(OTHER_ORG, at=START + DAY) == (theirs,)


@pytest.mark.requirement("C5", "E7")
async def test_a_new_key_is_audited_without_its_secret_and_no_repr_shows_the_secret(ports: Ports) -> None:
    created = await ports.create()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.WEBHOOK_KEY_CREATED, "key_admin", ORG)
    assert created.key.secret not in repr(entry)
    assert created.key.secret not in repr(created)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_only_an_admin_creates_keys(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create(a_principal(role))

    assert not ports.state.webhook_keys
    assert not ports.state.audit


async def test_no_secret_is_given_for_a_key_that_cannot_be_stored(ports: Ports, mocker: MockerFixture) -> None:
    ports.keys = mocker.create_autospec(WebhookKeyStore, instance=True)
    ports.keys.replace.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()
