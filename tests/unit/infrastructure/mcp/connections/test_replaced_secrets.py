"""ReplacedSecrets: which connections end when accounts change."""

import asyncio
from typing import cast

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.account_secrets import PersonSecretStore
from domain.ids import OrganizationId, UserId
from domain.mcp.given_secrets import GivenSecrets, binding_of_secrets
from domain.mcp.server import Isolation
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_key import ConnectionKey
from infrastructure.mcp.connections.connection_life import ConnectionLife
from infrastructure.mcp.connections.replaced_secrets import ReplacedSecrets
from tests.builders import ORG, OTHER_ORG, START
from tests.mcp_builders import a_started_secrets_server
from tests.refusals import storage_away

pytestmark = pytest.mark.requirement("P3")

SERVER = a_started_secrets_server()
GIVEN = GivenSecrets(
    binding=binding_of_secrets(SERVER.config), revision="rev_2", given_at=START, values={"token": "s3cret"}
)


async def settled() -> None:
    """The look is over."""
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "mcp-replaced-secrets"))


class Connections:
    """Ann's connection with a former secret, one with what she gave last, and one without
    secrets."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.store: MockType = mocker.create_autospec(PersonSecretStore, instance=True)
        self.store.load.return_value = GIVEN
        self.ended: list[McpConnection] = []
        self.former, self.newest, self.without = (
            cast(McpConnection, mocker.create_autospec(McpConnection, instance=True)) for _ in range(3)
        )
        live = {
            connection: self._life(mocker, revision)
            for connection, revision in ((self.former, "rev_1"), (self.newest, "rev_2"), (self.without, None))
        }
        self.replaced = ReplacedSecrets(live, end=self.ended.append, person_secrets=self.store)

    @staticmethod
    def _life(mocker: MockerFixture, revision: str | None) -> ConnectionLife:
        life: MockType = mocker.create_autospec(ConnectionLife, instance=True)
        life.record = mocker.Mock(server=SERVER)
        life.key = ConnectionKey(ORG, SERVER.id, 1, Isolation.SHARED, None, UserId("usr_ann"), revision)
        return cast(ConnectionLife, life)

    async def told(self, organization_id: OrganizationId | None) -> list[McpConnection]:
        """What ended."""
        self.replaced.look(organization_id)
        await settled()
        return self.ended


async def test_connections_with_a_former_secret_end_and_others_stay(mocker: MockerFixture) -> None:
    connections = Connections(mocker)
    assert await connections.told(ORG) == [connections.former]


async def test_connections_with_a_deleted_secret_end(mocker: MockerFixture) -> None:
    connections = Connections(mocker)
    connections.store.load.return_value = None
    assert await connections.told(None) == [connections.former, connections.newest]


async def test_changes_in_another_organization_are_not_looked_at(mocker: MockerFixture) -> None:
    connections = Connections(mocker)
    assert await connections.told(OTHER_ORG) == []
    connections.store.load.assert_not_awaited()


async def test_without_storage_all_stay_and_the_next_change_is_looked_at(mocker: MockerFixture) -> None:
    connections = Connections(mocker)
    connections.store.load.side_effect = storage_away()
    assert await connections.told(ORG) == []
    connections.store.load.side_effect = None
    assert await connections.told(ORG) == [connections.former]


async def test_one_failure_leaves_the_others_looked_at_and_is_made_up_for_with_the_next_change(
    mocker: MockerFixture,
) -> None:
    connections = Connections(mocker)
    connections.store.load.side_effect = [storage_away(), None]
    assert await connections.told(ORG) == [connections.newest]
    connections.store.load.side_effect = None
    assert connections.former in await connections.told(OTHER_ORG)


async def test_changes_during_a_look_are_looked_at_and_closing_ends_it(mocker: MockerFixture) -> None:
    connections = Connections(mocker)
    connections.replaced.look(ORG)
    connections.replaced.look(None)
    await settled()
    assert connections.ended == [connections.former]
    connections.replaced.look(ORG)
    await connections.replaced.close()
    await connections.replaced.close()
