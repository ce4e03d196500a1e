"""OAuth grants and pending authorizations in SQL, encrypted except for their keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, or_, select, update

from domain.identity.user import UserStatus
from domain.json_value import JsonObject, JsonValue
from infrastructure.mcp.oauth.grants import CLAIM_LASTS, Grant, GrantOwner, PendingAuthorization
from infrastructure.persistence.columns.fields import json_fields
from infrastructure.persistence.columns.upsert import Upsert, upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import mcp_server, oauth_authorization, oauth_grant, person_grant, user_account
from infrastructure.runtime.json_text import decode, encode

OF_SECRETS = ""
"""In the place of an issuer: secrets that the person gave (`SqlPersonSecretStore`)."""

stored_server = (
    select(mcp_server.c.id)
    .where(mcp_server.c.organization_id == bindparam("of_organization"), mcp_server.c.id == bindparam("of_server"))
    .with_for_update(key_share=True)
)
active_person = select(user_account.c.id).where(
    user_account.c.organization_id == bindparam("of_organization"),
    user_account.c.id == bindparam("of_person"),
    user_account.c.status == UserStatus.ACTIVE.value,
)
locked_person = active_person.with_for_update(key_share=True)


class _Grants:
    """Statements on the grants of organizations, or on those of persons."""

    def __init__(self, table: Table, *owner: str, only: ColumnElement[bool] | None = None) -> None:
        own = [table.c[column] == bindparam(_PARAMETERS[column]) for column in owner]
        usable = own if only is None else [*own, only]
        self.load = select(table.c.sealed).where(*usable).order_by(table.c.updated_at.desc(), table.c.issuer)
        self.save = _saving(table, owner)
        self.claim = (
            update(table)
            .where(
                *usable,
                table.c.issuer == bindparam("of_issuer"),
                or_(table.c.claimed_until.is_(None), table.c.claimed_until <= bindparam("moment")),
            )
            .values(claim=bindparam("new_claim"), claimed_until=bindparam("until"))
            .returning(table.c.sealed)
        )
        self.replace = (
            update(table)
            .where(*usable, table.c.issuer == bindparam("of_issuer"), table.c.claim == bindparam("old_claim"))
            .values(sealed=bindparam("new_sealed"), updated_at=bindparam("moment"))
        )
        self.release = (
            update(table).where(*own, table.c.claim == bindparam("old_claim")).values(claim=None, claimed_until=None)
        )
        self.remove = delete(table).where(*own, table.c.issuer != OF_SECRETS)


def _saving(table: Table, owner: tuple[str, ...]) -> Upsert:
    new = upsert(table)
    return new.on_conflict_do_update(
        index_elements=[*owner, "issuer"],
        set_={name: new.excluded[name] for name in ("sealed", "updated_at", "claim", "claimed_until")},
    )


_PARAMETERS = {"organization_id": "of_organization", "server_id": "of_server", "person_id": "of_person"}
_of_organizations = _Grants(oauth_grant, "organization_id", "server_id")
_of_persons = _Grants(
    person_grant,
    "organization_id",
    "server_id",
    "person_id",
    only=and_(active_person.exists(), person_grant.c.issuer != OF_SECRETS),
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


@dataclass(frozen=True, slots=True)
class _Owned:
    """The statements on an owner's grants, and the parameters that name the owner."""

    grants: _Grants
    wanted: Mapping[str, str]

    @classmethod
    def by(cls, owner: GrantOwner) -> "_Owned":
        wanted = {"of_organization": owner.organization_id, "of_server": owner.server_id}
        if owner.person_id is None:
            return cls(_of_organizations, wanted)
        return cls(_of_persons, {**wanted, "of_person": owner.person_id})


class SqlOAuthStore:
    """The `OAuthStore` of the token broker."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def load(self, owner: GrantOwner) -> tuple[Grant, ...]:
        owned = _Owned.by(owner)
        sealed = await self._database.read(
            lambda connection: list(connection.execute(owned.grants.load, owned.wanted).scalars()),
            scope=owner.organization_id,
        )
        return tuple(_grant.read(self._open(one)) for one in sealed)

    async def save(self, owner: GrantOwner, grant: Grant) -> bool:
        owned = _Owned.by(owner)
        row = {
            **{column: owned.wanted[name] for column, name in _PARAMETERS.items() if name in owned.wanted},
            "issuer": grant.issuer,
            "sealed": self._seal(_grant.write(grant)),
            "updated_at": grant.obtained_at,
        }

        def unit(connection: Connection) -> bool:
            if connection.execute(stored_server, owned.wanted).first() is None:
                return False
            # A person who is removed meanwhile leaves no grant behind.
            if owner.person_id is not None and connection.execute(locked_person, owned.wanted).first() is None:
                return False
            connection.execute(owned.grants.save, row)
            return True

        return await self._database.write(unit, scope=owner.organization_id)

    async def replace(self, owner: GrantOwner, grant: Grant, claim: str) -> bool:
        owned = _Owned.by(owner)
        wanted = {
            **owned.wanted,
            "of_issuer": grant.issuer,
            "old_claim": claim,
            "new_sealed": self._seal(_grant.write(grant)),
            "moment": grant.obtained_at,
        }
        replaced = await self._database.write(
            lambda connection: connection.execute(owned.grants.replace, wanted).rowcount, scope=owner.organization_id
        )
        return replaced > 0

    async def claim(self, owner: GrantOwner, issuer: str, claim: str, *, now: datetime) -> Grant | None:
        owned = _Owned.by(owner)
        wanted = {
            **owned.wanted,
            "of_issuer": issuer,
            "moment": now,
            "new_claim": claim,
            "until": now + CLAIM_LASTS,
        }
        sealed = await self._database.write(
            lambda connection: connection.execute(owned.grants.claim, wanted).scalar_one_or_none(),
            scope=owner.organization_id,
        )
        return None if sealed is None else _grant.read(self._open(sealed))

    async def release(self, owner: GrantOwner, claim: str) -> None:
        owned = _Owned.by(owner)

        def unit(connection: Connection) -> None:
            connection.execute(owned.grants.release, {**owned.wanted, "old_claim": claim})

        await self._database.write(unit, scope=owner.organization_id)

    async def remove(self, owner: GrantOwner) -> bool:
        owned = _Owned.by(owner)
        removed = await self._database.write(
            lambda connection: connection.execute(owned.grants.remove, owned.wanted).rowcount,
            scope=owner.organization_id,
        )
        return removed > 0

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
