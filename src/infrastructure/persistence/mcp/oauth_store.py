"""OAuth grants and pending authorizations in SQL, encrypted except for their keys."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from domain.ids import McpServerId, OrganizationId
from domain.json_value import JsonObject, JsonValue
from infrastructure.mcp.oauth.grants import CLAIM_LASTS, Grant, PendingAuthorization
from infrastructure.persistence.columns.fields import json_fields
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import mcp_server, oauth_authorization, oauth_grant
from infrastructure.runtime.json_text import decode, encode

_load = (
    select(oauth_grant.c.sealed)
    .where(
        oauth_grant.c.organization_id == bindparam("of_organization"), oauth_grant.c.server_id == bindparam("of_server")
    )
    .order_by(oauth_grant.c.updated_at.desc(), oauth_grant.c.issuer)
)
_server = (
    select(mcp_server.c.id)
    .where(mcp_server.c.organization_id == bindparam("of_organization"), mcp_server.c.id == bindparam("of_server"))
    .with_for_update(key_share=True)
)
_new = upsert(oauth_grant)
_save = _new.on_conflict_do_update(
    index_elements=["organization_id", "server_id", "issuer"],
    set_={"sealed": _new.excluded.sealed, "updated_at": _new.excluded.updated_at},
)
_of_server = (
    oauth_grant.c.organization_id == bindparam("of_organization"),
    oauth_grant.c.server_id == bindparam("of_server"),
)
_claim = (
    update(oauth_grant)
    .where(
        *_of_server,
        oauth_grant.c.issuer == bindparam("of_issuer"),
        or_(oauth_grant.c.claimed_until.is_(None), oauth_grant.c.claimed_until <= bindparam("moment")),
    )
    .values(claim=bindparam("new_claim"), claimed_until=bindparam("until"))
    .returning(oauth_grant.c.sealed)
)
_give_back = (
    update(oauth_grant)
    .where(*_of_server, oauth_grant.c.claim == bindparam("old_claim"))
    .values(claim=None, claimed_until=None)
)
_expect = oauth_authorization.insert()
_forget_expired = delete(oauth_authorization).where(oauth_authorization.c.expires_at < bindparam("moment"))
_take = (
    delete(oauth_authorization)
    .where(oauth_authorization.c.state_hash == bindparam("wanted"))
    .returning(oauth_authorization.c.sealed)
)

_grant = json_fields(Grant)
_pending = json_fields(PendingAuthorization)


class SqlOAuthStore:
    """The `OAuthStore` of the token broker."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> tuple[Grant, ...]:
        wanted = {"of_organization": organization_id, "of_server": server_id}
        sealed = await self._database.read(
            lambda connection: list(connection.execute(_load, wanted).scalars()), scope=organization_id
        )
        return tuple(_grant.read(self._open(one)) for one in sealed)

    async def save(self, organization_id: OrganizationId, server_id: McpServerId, grant: Grant) -> None:
        wanted = {"of_organization": organization_id, "of_server": server_id}
        row = {
            "organization_id": organization_id,
            "server_id": server_id,
            "issuer": grant.issuer,
            "sealed": self._seal(_grant.write(grant)),
            "updated_at": grant.obtained_at,
        }

        def unit(connection: Connection) -> None:
            if connection.execute(_server, wanted).first() is not None:
                connection.execute(_save, row)

        await self._database.write(unit, scope=organization_id)

    async def claim(
        self, organization_id: OrganizationId, server_id: McpServerId, issuer: str, claim: str, *, now: datetime
    ) -> Grant | None:
        wanted = {
            "of_organization": organization_id,
            "of_server": server_id,
            "of_issuer": issuer,
            "moment": now,
            "new_claim": claim,
            "until": now + CLAIM_LASTS,
        }
        sealed = await self._database.write(
            lambda connection: connection.execute(_claim, wanted).scalar_one_or_none(), scope=organization_id
        )
        return None if sealed is None else _grant.read(self._open(sealed))

    async def release(self, organization_id: OrganizationId, server_id: McpServerId, claim: str) -> None:
        wanted = {"of_organization": organization_id, "of_server": server_id, "old_claim": claim}

        def unit(connection: Connection) -> None:
            connection.execute(_give_back, wanted)

        await self._database.write(unit, scope=organization_id)

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        row = {
            "state_hash": state_hash,
            "organization_id": pending.organization_id,
            "server_id": pending.server_id,
            "expires_at": pending.expires_at,
            "sealed": self._seal(_pending.write(pending)),
        }

        def unit(connection: Connection) -> None:
            connection.execute(_forget_expired, {"moment": now})
            connection.execute(_expect, row)

        await self._database.write(unit, scope=pending.organization_id)

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        sealed = await self._database.write(
            lambda connection: connection.execute(_take, {"wanted": state_hash}).scalar_one_or_none(), scope=SYSTEM
        )
        return None if sealed is None else _pending.read(self._open(sealed))

    def _seal(self, document: JsonObject) -> bytes:
        return self._box.encrypt(encode(document).encode())

    def _open(self, sealed: bytes) -> JsonValue:
        return decode(self._box.decrypt(sealed).decode())
