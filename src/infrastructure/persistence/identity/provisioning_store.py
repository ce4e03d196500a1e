"""People whom directories manage, and the directories' tokens, in SQL."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from application.provisioning.ports import ProvisionedChange
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.user import User
from domain.ids import IdentityProviderId, UserId
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.fields import json_fields, row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database, Unit, duplicates_as
from infrastructure.persistence.tables import provisioned_user, scim_token, user_account, user_group_member

_of_provider = (
    provisioned_user.c.organization_id == bindparam("of_organization"),
    provisioned_user.c.provider_id == bindparam("of_provider"),
)
_MANAGED = [
    column.label(f"managed_{column.name}")
    for column in provisioned_user.c
    if column.name not in {"organization_id", "name_key"}
]
_users = (
    select(user_account, *_MANAGED)
    .join(provisioned_user, provisioned_user.c.user_id == user_account.c.id)
    .where(*_of_provider)
)
_all = _users.order_by(provisioned_user.c.created_at, provisioned_user.c.user_id)
_one = _users.where(provisioned_user.c.user_id == bindparam("of_user"))
_named = _users.where(provisioned_user.c.name_key == bindparam("of_name"))
_person = select(user_account).where(
    user_account.c.organization_id == bindparam("of_organization"),
    user_account.c.issuer == bindparam("of_issuer"),
    user_account.c.subject == bindparam("of_subject"),
)
_add_user = upsert(user_account).on_conflict_do_nothing(["organization_id", "issuer", "subject"])
_change_user = update(user_account).where(user_account.c.id == bindparam("of_user"))
_add = provisioned_user.insert()
_change = update(provisioned_user).where(provisioned_user.c.user_id == bindparam("of_user"))
_remove = delete(provisioned_user).where(*_of_provider, provisioned_user.c.user_id == bindparam("of_user"))
_leave_groups = delete(user_group_member).where(user_group_member.c.user_id == bindparam("of_user"))
_elsewhere = select(user_account).where(
    user_account.c.provider_id == bindparam("of_provider"),
    user_account.c.issuer == bindparam("of_issuer"),
    user_account.c.subject == bindparam("of_subject"),
    user_account.c.organization_id != bindparam("of_organization"),
)
_revoke_token = delete(scim_token).where(scim_token.c.provider_id == bindparam("of_provider"))
_add_token = upsert(scim_token)
_put_token = _add_token.on_conflict_do_update(
    ["provider_id"],
    set_={"token_hash": _add_token.excluded.token_hash, "created_at": _add_token.excluded.created_at},
)
_token = select(scim_token.c.provider_id).where(scim_token.c.token_hash == bindparam("of_hash"))

_user = row_fields(User)
_described = row_fields(User, only={"subject", "name", "email", "role", "custom_role", "role_fixed"})
_entry = json_fields(DirectoryEntry)


class SqlProvisioningStore:
    """The ports `ScimTokens`, `ProvisionedUserStore` and `ProvisionedAccess`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def set_token(self, provider: IdentityProvider, token_hash: str, at: datetime, audit: AuditEvent) -> None:
        row = {
            "provider_id": provider.id,
            "organization_id": provider.organization_id,
            "token_hash": token_hash,
            "created_at": at,
        }

        def unit(connection: Connection) -> None:
            connection.execute(_put_token, row)
            record(connection, audit)

        await self._database.write(unit, scope=provider.organization_id)

    async def revoke_token(self, provider: IdentityProvider, audit: AuditEvent) -> bool:
        return await self._database.write(
            recorded_change(_revoke_token, {"of_provider": provider.id}, audit), scope=provider.organization_id
        )

    async def provider_of(self, token_hash: str) -> IdentityProviderId | None:
        found = await self._database.read(
            lambda connection: connection.execute(_token, {"of_hash": token_hash}).scalar_one_or_none(), scope=SYSTEM
        )
        return None if found is None else IdentityProviderId(found)

    async def add(self, new: ProvisionedUser, audit: AuditEvent) -> ProvisionedUser:
        user = new.user
        person = {
            "of_organization": user.organization_id,
            "of_issuer": user.issuer,
            "of_subject": user.subject,
        }

        def unit(connection: Connection) -> ProvisionedUser:
            connection.execute(_add_user, _user.write(user))
            stored = new.of(_user.of_row(connection.execute(_person.with_for_update(), person).one()))
            described = stored.user
            managed = {"user_id": described.id, "organization_id": user.organization_id, "provider_id": new.provider_id}
            connection.execute(_add, {**managed, **_managed(new), "created_at": new.created_at})
            connection.execute(_change_user.values(_described.write(described)), {"of_user": described.id})
            record(connection, audit)
            return stored

        return await self._write(unit, user)

    async def get(self, provider: IdentityProvider, user_id: UserId) -> ProvisionedUser | None:
        wanted = {**_wanted(provider), "of_user": user_id}
        row = await self._database.read(
            lambda connection: connection.execute(_one, wanted).first(), scope=provider.organization_id
        )
        return None if row is None else _managed_of(row)

    async def named(self, provider: IdentityProvider, user_name: str) -> ProvisionedUser | None:
        wanted = {**_wanted(provider), "of_name": _key(user_name)}
        row = await self._database.read(
            lambda connection: connection.execute(_named, wanted).first(), scope=provider.organization_id
        )
        return None if row is None else _managed_of(row)

    async def all(self, provider: IdentityProvider) -> tuple[ProvisionedUser, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_all, _wanted(provider)).all(), scope=provider.organization_id
        )
        return tuple(map(_managed_of, rows))

    async def change(self, provider: IdentityProvider, user_id: UserId, decide: ProvisionedChange) -> ProvisionedUser:
        wanted = {**_wanted(provider), "of_user": user_id}

        def unit(connection: Connection) -> ProvisionedUser:
            row = connection.execute(_one.with_for_update(), wanted).first()
            stored = _managed_of(existing(row, "user", user_id))
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            of_user = {"of_user": user_id}
            connection.execute(_change_user.values(_described.write(changed.user)), of_user)
            connection.execute(_change.values(_managed(changed)), of_user)
            record(connection, audit)
            return changed

        return await self._write(unit, provider)

    async def remove(self, provider: IdentityProvider, user_id: UserId) -> None:
        def unit(connection: Connection) -> None:
            connection.execute(_leave_groups, {"of_user": user_id})
            connection.execute(_remove, {**_wanted(provider), "of_user": user_id})

        await self._database.write(unit, scope=provider.organization_id)

    async def elsewhere(self, provider: IdentityProvider, issuer: str, subject: str) -> tuple[User, ...]:
        wanted = {**_wanted(provider), "of_issuer": issuer, "of_subject": subject}
        rows = await self._database.read(lambda connection: connection.execute(_elsewhere, wanted).all(), scope=SYSTEM)
        return tuple(map(_user.of_row, rows))

    async def _write(self, unit: Unit[ProvisionedUser], owner: User | IdentityProvider) -> ProvisionedUser:
        with duplicates_as(user_name_taken()):
            return await self._database.write(unit, scope=owner.organization_id)


def user_name_taken() -> ServiceError:
    return conflict("user_name_taken", "The directory has another person of this user name or external id.")


def _wanted(provider: IdentityProvider) -> dict[str, str]:
    return {"of_organization": provider.organization_id, "of_provider": provider.id}


def _key(user_name: str) -> str:
    """User names are compared without their case (RFC 7643, section 4.1.1)."""
    return user_name.casefold()


def _managed(user: ProvisionedUser) -> dict[str, object]:
    return {
        "name_key": _key(user.entry.user_name),
        "entry": _entry.write(user.entry),
        "version": user.version,
        "changed_at": user.changed_at,
    }


def _managed_of(row: AnyRow) -> ProvisionedUser:
    return ProvisionedUser(
        user=_user.of_row(row),
        provider_id=IdentityProviderId(row.managed_provider_id),
        entry=_entry.read(row.managed_entry),
        version=row.managed_version,
        created_at=row.managed_created_at,
        changed_at=row.managed_changed_at,
    )
