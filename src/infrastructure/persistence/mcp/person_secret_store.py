"""Secrets that people gave for MCP servers, in SQL: rows of `person_grant` without an issuer, so
that all that holds for grants of persons holds for them."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, select

from application.mcp.account_secrets import GiveSecrets
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from infrastructure.persistence.columns.fields import json_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.oauth_store import OF_SECRETS, active_person, locked_person, stored_server
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import person_grant
from infrastructure.runtime.json_text import decode, encode

_own = (
    person_grant.c.organization_id == bindparam("of_organization"),
    person_grant.c.server_id == bindparam("of_server"),
    person_grant.c.person_id == bindparam("of_person"),
    person_grant.c.issuer == OF_SECRETS,
)
_load = select(person_grant.c.sealed).where(*_own, active_person.exists())
_has = select(person_grant.c.updated_at).where(*_own)
_servers = select(person_grant.c.server_id).where(
    person_grant.c.organization_id == bindparam("of_organization"),
    person_grant.c.person_id == bindparam("of_person"),
)
_remove = delete(person_grant).where(*_own)
_new = upsert(person_grant)
_save = _new.on_conflict_do_update(
    index_elements=["organization_id", "server_id", "person_id", "issuer"],
    set_={name: _new.excluded[name] for name in ("sealed", "updated_at")},
)
_given = json_fields(GivenSecrets)


class SqlPersonSecretStore:
    """The `PersonSecretStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def load(self, owner: AccountOwner) -> GivenSecrets | None:
        return await self._database.read(
            lambda connection: self._stored(connection, owner), scope=owner.organization_id
        )

    async def has(self, owner: AccountOwner) -> bool:
        return await self._database.read(
            lambda connection: connection.execute(_has, _wanted(owner)).first() is not None,
            scope=owner.organization_id,
        )

    async def servers(self, organization_id: OrganizationId, person_id: UserId) -> frozenset[McpServerId]:
        wanted = {"of_organization": organization_id, "of_person": person_id}
        found = await self._database.read(
            lambda connection: connection.execute(_servers, wanted).scalars().all(), scope=organization_id
        )
        return frozenset(map(McpServerId, found))

    async def save(self, owner: AccountOwner, decide: GiveSecrets) -> bool:
        def unit(connection: Connection) -> bool:
            # A server or a person that is removed meanwhile leaves nothing behind.
            if any(connection.execute(one, _wanted(owner)).first() is None for one in (stored_server, locked_person)):
                return False
            given = decide(self._stored(connection, owner))
            row = {
                "organization_id": owner.organization_id,
                "server_id": owner.server_id,
                "person_id": owner.person_id,
                "issuer": OF_SECRETS,
                "sealed": self._box.encrypt(encode(_given.write(given)).encode()),
                "updated_at": given.given_at,
            }
            connection.execute(_save, row)
            return True

        return await self._database.write(unit, scope=owner.organization_id)

    async def remove(self, owner: AccountOwner) -> bool:
        removed = await self._database.write(
            lambda connection: connection.execute(_remove, _wanted(owner)).rowcount, scope=owner.organization_id
        )
        return removed > 0

    def _stored(self, connection: Connection, owner: AccountOwner) -> GivenSecrets | None:
        sealed = connection.execute(_load, _wanted(owner)).scalar_one_or_none()
        return None if sealed is None else _given.read(decode(self._box.decrypt(sealed).decode()))


def _wanted(owner: AccountOwner) -> Mapping[str, str]:
    return {"of_organization": owner.organization_id, "of_server": owner.server_id, "of_person": owner.person_id}
