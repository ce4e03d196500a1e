"""Encrypting everything anew, over real databases."""

from dataclasses import replace

import pytest
from sqlalchemy import Connection, LargeBinary, select

from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.ids import McpServerId
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.policy.canary import CanaryToken
from domain.secrets.secret import Secret
from infrastructure.persistence.agents.store import SqlAgentStore
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.persistence.secrets.store import SqlSecretStore
from infrastructure.persistence.secrets.vault import ENCRYPTED, SqlSecretVault
from infrastructure.persistence.tables import mcp_server, message, metadata, source_part
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, START, a_server, an_agent, an_audit_event, numbered

OLD, NEW = "an old passphrase of somebody", "the new passphrase of somebody"
FILES = McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="run", env={"TOKEN": "env-value"})


class Stored:
    """Servers and secrets, encrypted with the keys of `box`."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self.secrets = SqlSecretStore(database=database, box=box)
        self.servers = SqlMcpServerStore(database=database, box=box)
        self.vault = SqlSecretVault(database=database, box=box)

    async def add_secret(self, number: int) -> None:
        secret = Secret(organization_id=ORG, name=f"S{number}", created_at=START, updated_at=START)
        await self.secrets.put(secret, f"value {number}", an_audit_event(number, action=AuditAction.SECRET_SET))

    async def add_server(self, number: int) -> None:
        server = a_server(McpServerId(numbered("mcp", number)), config=replace(FILES, slug=f"files-{number}"))
        await self.servers.add(server, an_audit_event(100 + number, action=AuditAction.MCP_SERVER_CREATED))


def test_every_binary_column_of_the_schema_is_known_to_the_vault() -> None:
    binary = {
        column for table in metadata.tables.values() for column in table.columns if isinstance(column.type, LargeBinary)
    }
    in_clear = {source_part.c.data, mcp_server.c.installed_lock}
    assert binary - in_clear == {*ENCRYPTED, message.c.provider_items}, (
        "files of users, and versions and hashes of packages, are stored as they are"
    )


@pytest.mark.requirement("B12")
async def test_after_the_last_step_everything_can_be_read_with_the_new_key_alone(database: Database) -> None:
    box = SecretBox([OLD])
    stored = Stored(database, box)
    for number in range(5):
        await stored.add_secret(number)
        await stored.add_server(number)
    box.use([NEW, OLD])

    steps = [await stored.vault.reencrypt(4) for _ in range(3)]

    assert [(step.reencrypted, step.remaining) for step in steps] == [(4, 6), (4, 2), (2, 0)]
    box.use([NEW])
    assert [await stored.secrets.value(ORG, f"S{number}") for number in range(5)] == [f"value {n}" for n in range(5)]
    for number in range(5):
        server = await stored.servers.get(ORG, f"files-{number}")
        assert server is not None
        assert server.config.env == {"TOKEN": "env-value"}
    assert (await stored.vault.reencrypt(4)).reencrypted == 0


@pytest.mark.requirement("C4")
async def test_canary_tokens_of_every_version_of_an_agent_are_encrypted_anew(database: Database) -> None:
    box = SecretBox([OLD])
    agents = SqlAgentStore(database=database, box=box)
    agent = an_agent(canary_tokens=(CanaryToken(id="vault", secret="Nightingale-4471"),))
    second = replace(agent, version=2)
    await agents.add(agent, an_audit_event(1, action=AuditAction.AGENT_CREATED))
    await agents.save(second, expected_version=1, audit=an_audit_event(2, action=AuditAction.AGENT_UPDATED))
    box.use([NEW, OLD])

    rotated = await SqlSecretVault(database=database, box=box).reencrypt(10)

    assert (rotated.reencrypted, rotated.remaining) == (2, 0)
    box.use([NEW])
    assert await agents.get(ORG, agent.id) == second


@pytest.mark.requirement("B12")
async def test_a_rotation_cut_off_in_the_middle_loses_nothing_and_can_go_on(database: Database) -> None:
    stored = Stored(database, SecretBox([OLD]))
    for number in range(3):
        await stored.add_secret(number)
    await Stored(database, SecretBox([NEW, OLD])).vault.reencrypt(2)

    after_restart = Stored(database, SecretBox([NEW, OLD]))

    assert [await after_restart.secrets.value(ORG, f"S{n}") for n in range(3)] == [f"value {n}" for n in range(3)]
    assert (await after_restart.vault.reencrypt(10)).remaining == 0
    assert await Stored(database, SecretBox([NEW])).secrets.value(ORG, "S2") == "value 2"


@pytest.mark.requirement("B12")
async def test_a_value_that_came_back_under_the_old_key_is_encrypted_by_the_next_step(
    database: Database,
) -> None:
    box = SecretBox([OLD])
    stored = Stored(database, box)
    sealed_before = box.encrypt(b"late")
    await stored.add_secret(1)
    box.use([NEW, OLD])
    assert (await stored.vault.reencrypt(10)).remaining == 0

    def put_back(connection: Connection) -> None:
        column = ENCRYPTED[1]
        connection.execute(column.table.update().values({column: sealed_before}))

    await database.write(put_back, scope=SYSTEM)
    assert (await stored.vault.reencrypt(10)).reencrypted == 1
    assert await Stored(database, SecretBox([NEW])).secrets.value(ORG, "S1") == "late"


async def test_a_value_that_no_key_opens_stops_the_rotation_and_stays_as_it_is(database: Database) -> None:
    lost = Stored(database, SecretBox(["a passphrase that is gone"]))
    await lost.add_secret(1)
    column = ENCRYPTED[1]
    before = await database.read(lambda connection: connection.execute(select(column)).scalar_one(), scope=SYSTEM)

    with pytest.raises(ServiceError) as stopped:
        await Stored(database, SecretBox([NEW, OLD])).vault.reencrypt(10)

    assert stopped.value.code == "secret_undecryptable"
    assert (
        await database.read(lambda connection: connection.execute(select(column)).scalar_one(), scope=SYSTEM) == before
    )
