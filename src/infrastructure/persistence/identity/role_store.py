"""Custom roles in SQL, and who has them."""

from sqlalchemy import Connection, bindparam, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from application.identity.ports import CustomRoleChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.custom_role import MAX_ROLES, CustomRole, RoleHolders
from domain.identity.permission import Permission
from domain.identity.user import UserStatus
from domain.ids import OrganizationId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.engine.database import SYSTEM, Database, is_duplicate
from infrastructure.persistence.tables import api_key, custom_role, identity_provider, organization, user_account

_in_organization = custom_role.c.organization_id == bindparam("of_organization")
_of = (_in_organization, custom_role.c.name == bindparam("of_name"))
_all = select(custom_role).where(_in_organization).order_by(custom_role.c.name)
_get = select(custom_role).where(*_of)
_lock = _get.with_for_update()
_change = update(custom_role).where(*_of)
_delete = delete(custom_role).where(*_of)
_count = select(func.count()).select_from(custom_role).where(_in_organization)
# Parallel additions are counted one after the other.
_lock_organization = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)
_keys = (
    select(api_key.c.id)
    .where(
        api_key.c.organization_id == bindparam("of_organization"),
        api_key.c.custom_role == bindparam("of_name"),
        api_key.c.revoked_at.is_(None),
        or_(
            api_key.c.expires_at.is_(None), api_key.c.expires_at > bindparam("moment", type_=api_key.c.expires_at.type)
        ),
    )
    .order_by(api_key.c.id)
)
_users = (
    select(user_account.c.id)
    .where(
        user_account.c.organization_id == bindparam("of_organization"),
        user_account.c.custom_role == bindparam("of_name"),
        user_account.c.status != UserStatus.REMOVED.value,
    )
    .order_by(user_account.c.id)
)
_providers = (
    select(identity_provider.c.name, identity_provider.c.organization_id, identity_provider.c.rules)
    .where(
        or_(
            identity_provider.c.organization_id == bindparam("of_organization"),
            identity_provider.c.installation.is_(True),
        )
    )
    .order_by(identity_provider.c.name)
)


_PERMISSIONS = frozenset(Permission)


def _known(stored: list[str]) -> tuple[Permission, ...]:
    """Permissions of newer versions are left out."""
    return tuple(Permission(each) for each in stored if each in _PERMISSIONS)


_role = row_fields(CustomRole, codecs={tuple[Permission, ...]: (list, _known)})


class SqlCustomRoleStore:
    """The ports `CustomRoleStore` and `RoleGrants`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, role: CustomRole, audit: AuditEvent) -> None:
        wanted = {"of_organization": role.organization_id}

        def unit(connection: Connection) -> None:
            connection.execute(_lock_organization, wanted)
            if connection.execute(_count, wanted).scalar_one() >= MAX_ROLES:
                raise conflict("too_many_roles", f"An organization has at most {MAX_ROLES} custom roles.")
            connection.execute(custom_role.insert(), _role.write(role))
            record(connection, audit)

        try:
            await self._database.write(unit, scope=role.organization_id)
        except IntegrityError as error:
            if is_duplicate(error):
                raise conflict("role_exists", "The organization has another role of this name.") from error
            raise

    async def all(self, organization_id: OrganizationId) -> tuple[CustomRole, ...]:
        wanted = {"of_organization": organization_id}
        rows = await self._database.read(
            lambda connection: connection.execute(_all, wanted).all(), scope=organization_id
        )
        return tuple(map(_role.of_row, rows))

    async def permissions_of(self, organization_id: OrganizationId, custom_role: str) -> frozenset[Permission]:
        wanted = {"of_organization": organization_id, "of_name": custom_role}
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return frozenset() if row is None else frozenset(_role.of_row(row).permissions)

    async def change(self, organization_id: OrganizationId, name: str, decide: CustomRoleChange) -> CustomRole:
        wanted = {"of_organization": organization_id, "of_name": name}

        def unit(connection: Connection) -> CustomRole:
            stored = _role.of_row(existing(connection.execute(_lock, wanted).first(), "role", name))
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            connection.execute(_change.values(_role.write(changed)), wanted)
            record(connection, audit)
            return changed

        return await self._database.write(unit, scope=organization_id)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        wanted = {"of_organization": organization_id, "of_name": name}

        def unit(connection: Connection) -> bool:
            if connection.execute(_lock, wanted).first() is None:
                return False
            holders = RoleHolders(
                api_keys=tuple(connection.execute(_keys, {**wanted, "moment": audit.at}).scalars()),
                users=tuple(connection.execute(_users, wanted).scalars()),
                identity_providers=tuple(
                    row.name
                    for row in connection.execute(_providers, {"of_organization": organization_id})
                    if any(
                        rule.get("custom_role") == name
                        and (rule.get("organization_id") or row.organization_id) == organization_id
                        for rule in row.rules
                    )
                ),
            )
            holders.require_none(name)
            connection.execute(_delete, wanted)
            record(connection, audit)
            return True

        # Identity providers of the installation belong to other organizations.
        return await self._database.write(unit, scope=SYSTEM)
