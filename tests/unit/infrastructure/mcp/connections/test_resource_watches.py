"""Watched resources of servers that are used with secrets of each person."""

import asyncio

import pytest

from application.mcp.ports import ConnectionScope, McpFailure
from domain.identity.user import UserStatus
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, binding_of_secrets
from domain.mcp.server import Credentials, McpServer, McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.mcp.connections.connection_key import acting_server, given_revision
from infrastructure.mcp.connections.resource_watches import ResourceWatches, WantedResources
from tests.builders import ORG, SERVER, START, a_server
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.people_builders import USER, a_user

pytestmark = pytest.mark.requirement("P3")

SCOPE = ConnectionScope(organization_id=ORG, person_id=USER)
OWNER = AccountOwner(ORG, SERVER, USER)


class Followed:
    """Connections that follow until they are cancelled. `used` has the revision of the secrets of
    each, in order."""

    def __init__(self, secrets: InMemoryPersonSecretStore) -> None:
        self._secrets = secrets
        self.used: list[str] = []
        self.ended = asyncio.Semaphore(0)
        self.followed = asyncio.Semaphore(0)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        self.used.append(await given_revision(acting_server(server, scope), self._secrets))
        self.followed.release()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.release()


class Scene:
    """A resource that Ann watches with her secret."""

    def __init__(self) -> None:
        state = InMemoryState()
        state.users[USER] = a_user()
        self.state, self.rows = state, RowNotifications(shared=False)
        self.secrets = InMemoryPersonSecretStore(state)
        self.server = a_server(
            config=McpServerConfig(
                slug="tickets",
                kind=McpServerKind.HTTP,
                url="https://mcp.example.org/mcp",
                credentials=Credentials.PERSON,
                headers={"X-Token": SecretRef("person:token")},
            )
        )
        self.connections = Followed(self.secrets)
        self.give("rev_1")
        self.watches = ResourceWatches(
            self.connections, person_secrets=self.secrets, row_notifications=self.rows, fraction=lambda: 0.001
        )
        self.release = self.watches.watch(self.server, SCOPE, "file:///a", lambda _: None)

    def give(self, revision: str) -> None:
        self.secrets.given[OWNER] = GivenSecrets(
            binding=binding_of_secrets(self.server.config),
            revision=revision,
            given_at=START,
            values={"token": revision},
        )

    async def followed(self) -> None:
        """Wait until the resource is followed once more."""
        await asyncio.wait_for(self.connections.followed.acquire(), 60)


async def test_a_replaced_secret_is_watched_with_and_other_changes_interrupt_nothing() -> None:
    scene = Scene()
    try:
        await scene.followed()
        scene.rows.changed("person_grant", ORG)
        scene.give("rev_2")
        scene.rows.changed("person_grant", ORG)
        await scene.followed()
        await asyncio.wait_for(scene.connections.ended.acquire(), 60)
        assert (scene.connections.used, scene.connections.ended.locked()) == (["rev_1", "rev_2"], True)
    finally:
        await scene.watches.close()


@pytest.mark.parametrize("how", ["deleted", "deactivated"])
async def test_nothing_is_watched_with_a_deleted_secret_or_for_a_person_who_is_not_active_until_it_is_given_again(
    how: str,
) -> None:
    scene = Scene()
    try:
        await scene.followed()
        if how == "deleted":
            del scene.secrets.given[OWNER]
            scene.rows.changed("person_grant", ORG)
        else:
            scene.state.users[USER] = a_user(status=UserStatus.DEACTIVATED)
            scene.rows.wrote(("user_account",), None)
        await asyncio.wait_for(scene.connections.ended.acquire(), 60)
        with pytest.raises(McpFailure):
            await given_revision(acting_server(scene.server, SCOPE), scene.secrets)
        assert scene.connections.used == ["rev_1"]
        scene.state.users[USER] = a_user()
        scene.give("rev_2")
        await scene.followed()
        assert scene.connections.used == ["rev_1", "rev_2"]
    finally:
        await scene.watches.close()
