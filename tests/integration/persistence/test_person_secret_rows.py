"""Secrets of persons in rows: encrypted, under the newest key after a rotation, and gone with their
person or server."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from domain.audit.event import AuditAction
from domain.ids import AuditEventId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.persistence.cached import stores as cached
from infrastructure.persistence.cached.read_through import ReadThrough
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.identity.user_store import SqlUserStore
from infrastructure.persistence.mcp.person_secret_store import SqlPersonSecretStore
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.persistence.secrets.vault import SqlSecretVault
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, START, an_audit_event
from tests.mcp_builders import PERSON_SERVER, a_secrets_server
from tests.people_builders import USER, a_user

pytestmark = pytest.mark.requirement("P3")

OLD, NEW, PLANTED = "an old passphrase of somebody", "the new passphrase of somebody", "s3cret-of-ann"
OWNER = AccountOwner(ORG, PERSON_SERVER, USER)
GIVEN = GivenSecrets(binding="b", revision="rev_1", given_at=START, values={"token": PLANTED})
ADDED = an_audit_event(1, action=AuditAction.USER_CREATED)


async def filled(database: Database, box: SecretBox) -> SqlPersonSecretStore:
    """The secret of a person, for a server."""
    servers, store = SqlMcpServerStore(database=database, box=box), SqlPersonSecretStore(database=database, box=box)
    await servers.add(a_secrets_server(), an_audit_event(2, action=AuditAction.MCP_SERVER_CREATED))
    await SqlUserStore(database=database).add(a_user(), ADDED)
    assert await store.save(OWNER, lambda _: GIVEN)
    return store


async def rows(database: Database) -> list[bytes]:
    wanted = text("SELECT sealed FROM person_grant")
    return await database.read(lambda connection: list(connection.execute(wanted).scalars()), scope=SYSTEM)


async def test_a_value_is_encrypted_and_a_rotation_encrypts_it_anew(database: Database) -> None:
    box = SecretBox([OLD])
    store = await filled(database, box)
    [before] = await rows(database)
    assert PLANTED.encode() not in before
    box.use([NEW, OLD])
    rotated = await SqlSecretVault(database=database, box=box).reencrypt(10)
    assert rotated.remaining == 0
    box.use([NEW])
    assert await store.load(OWNER) == GIVEN
    assert await rows(database) != [before]


@pytest.mark.parametrize("gone", ["person", "server"])
async def test_a_removed_person_or_server_takes_the_secrets_along(database: Database, gone: str) -> None:
    box = SecretBox([OLD])
    await filled(database, box)
    entry = replace(ADDED, id=AuditEventId("aud_removed"))
    if gone == "person":
        await SqlUserStore(database=database).change(ORG, USER, lambda user: (user.removed(), entry))
    else:
        await SqlMcpServerStore(database=database, box=box).delete(ORG, PERSON_SERVER, entry)
    assert await rows(database) == []


async def test_what_is_kept_in_memory_is_read_again_after_a_change_of_people(database: Database) -> None:
    box, notifications = SecretBox([OLD]), RowNotifications(shared=False)
    store = ReadThrough(await filled(database, box), cached.PERSON_SECRETS, notifications=notifications).cached
    assert await store.load(OWNER) == GIVEN
    entry = replace(ADDED, id=AuditEventId("aud_removed"))
    await SqlUserStore(database=database).change(ORG, USER, lambda user: (user.removed(), entry))
    assert await store.load(OWNER) == GIVEN  # not told yet
    notifications.wrote(("api_key",), None)
    assert await store.load(OWNER) is None
