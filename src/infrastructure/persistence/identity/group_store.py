"""Groups of directories in SQL."""

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import Connection, bindparam, delete, select, union_all, update

from application.provisioning.ports import GroupChange
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing
from domain.identity.identity_provider import IdentityProvider
from domain.identity.organization_group import name_of_owner
from domain.identity.provisioning import Group
from domain.ids import GroupId, IdentityProviderId, OrganizationId, UserId
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import SYSTEM, Database, Unit, duplicates_as
from infrastructure.persistence.identity.group_owners import owned_by_group
from infrastructure.persistence.tables import (
    organization_group,
    provisioned_user,
    user_account,
    user_group,
    user_group_member,
)

_groups = select(user_group).where(user_group.c.organization_id == bindparam("of_organization"))
_all = _groups.order_by(user_group.c.name, user_group.c.id)
_of_provider = user_group.c.provider_id == bindparam("of_provider")
_one = _groups.where(_of_provider, user_group.c.id == bindparam("of_group"))
_change = update(user_group).where(user_group.c.id == bindparam("of_group"))
_delete = delete(user_group).where(
    user_group.c.organization_id == bindparam("of_organization"), _of_provider, user_group.c.id == bindparam("of_group")
)
_members = select(user_group_member).where(user_group_member.c.organization_id == bindparam("of_organization"))
_members_of = _members.where(user_group_member.c.group_id == bindparam("of_group"))
_drop_members = delete(user_group_member).where(user_group_member.c.group_id == bindparam("of_group"))
_users = select(user_account.c.id).where(
    user_account.c.organization_id == bindparam("of_organization"),
    user_account.c.id.in_(bindparam("of_users", expanding=True)),
)
_names = (
    select(user_group.c.name)
    .join(user_group_member, user_group_member.c.group_id == user_group.c.id)
    .join(user_account, user_account.c.id == user_group_member.c.user_id)
    .join(provisioned_user, provisioned_user.c.user_id == user_account.c.id)
    .where(
        _of_provider,
        # Another issuer may have the same subject.
        provisioned_user.c.provider_id == bindparam("of_provider"),
        user_account.c.subject == bindparam("of_subject"),
    )
    .order_by(user_group.c.name)
)
_others_of_name = union_all(
    select(organization_group.c.id).where(
        organization_group.c.organization_id == bindparam("of_organization"),
        organization_group.c.name == bindparam("named"),
    ),
    select(user_group.c.id).where(
        user_group.c.organization_id == bindparam("of_organization"),
        user_group.c.name == bindparam("named"),
        user_group.c.id != bindparam("of_group"),
    ),
)

_group = row_fields(Group, without={"members"})


class SqlGroupStore:
    """The ports `GroupStore` and `GroupNames`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add_group(self, group: Group, audit: AuditEvent) -> Group:
        def unit(connection: Connection) -> Group:
            _refuse_name_of_owner(connection, group)
            connection.execute(user_group.insert(), _group.write(group))
            stored = _store_members(connection, group)
            record(connection, audit)
            return stored

        return await self._write(unit, group.organization_id)

    async def group(self, provider: IdentityProvider, group_id: GroupId) -> Group | None:
        wanted = _wanted(provider, group_id)

        def read(connection: Connection) -> Group | None:
            row = connection.execute(_one, wanted).first()
            return None if row is None else _with_members(connection, row)

        return await self._database.read(read, scope=provider.organization_id)

    async def groups(self, organization_id: OrganizationId) -> tuple[Group, ...]:
        wanted = {"of_organization": organization_id}

        def read(connection: Connection) -> tuple[Group, ...]:
            members: dict[str, list[str]] = {}
            for row in connection.execute(_members, wanted):
                members.setdefault(row.group_id, []).append(row.user_id)
            rows = connection.execute(_all, wanted).all()
            return tuple(_group.of_row(row, members=_sorted(members.get(row.id, ()))) for row in rows)

        return await self._database.read(read, scope=organization_id)

    async def change_group(self, provider: IdentityProvider, group_id: GroupId, decide: GroupChange) -> Group:
        wanted = _wanted(provider, group_id)

        def unit(connection: Connection) -> Group:
            row = existing(connection.execute(_one.with_for_update(), wanted).first(), "group", group_id)
            stored = _with_members(connection, row)
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            if changed.name != stored.name:
                _refuse_name_of_owner(connection, changed)
            connection.execute(_change.values(_group.write(changed)), {"of_group": group_id})
            connection.execute(_drop_members, {"of_group": group_id})
            changed = _store_members(connection, changed)
            record(connection, audit)
            return changed

        return await self._write(unit, provider.organization_id)

    async def delete_group(self, provider: IdentityProvider, group_id: GroupId, audit: AuditEvent) -> bool:
        return await self._database.write(
            recorded_change(_delete, _wanted(provider, group_id), audit), scope=provider.organization_id
        )

    async def names_of(self, provider_id: IdentityProviderId, subject: str) -> tuple[str, ...]:
        # The caller's organization is not known yet.
        wanted = {"of_provider": provider_id, "of_subject": subject}
        names = await self._database.read(
            lambda connection: connection.execute(_names, wanted).scalars().all(), scope=SYSTEM
        )
        return tuple(names)

    async def _write(self, unit: Unit[Group], organization_id: OrganizationId) -> Group:
        with duplicates_as(group_name_taken()):
            return await self._database.write(unit, scope=organization_id)


def group_name_taken() -> ServiceError:
    return conflict("group_name_taken", "The directory has another group of this name.")


def _refuse_name_of_owner(connection: Connection, group: Group) -> None:
    """What belongs to the group of a name belongs to all groups of that name."""
    wanted = {"of_organization": group.organization_id, "of_group": group.id, "named": group.name}
    is_shared = connection.execute(_others_of_name, wanted).first() is not None
    if is_shared and owned_by_group(connection, group.organization_id, group.name):
        raise name_of_owner()


def _wanted(provider: IdentityProvider, group_id: GroupId) -> dict[str, str]:
    return {"of_organization": provider.organization_id, "of_provider": provider.id, "of_group": group_id}


def _store_members(connection: Connection, group: Group) -> Group:
    """The group with those members who are users of its organization."""
    wanted = {"of_organization": group.organization_id, "of_users": list(group.members)}
    members = _sorted(connection.execute(_users, wanted).scalars().all()) if group.members else ()
    rows = [{"group_id": group.id, "user_id": member, "organization_id": group.organization_id} for member in members]
    if rows:
        connection.execute(user_group_member.insert(), rows)
    return replace(group, members=members)


def _with_members(connection: Connection, row: AnyRow) -> Group:
    wanted = {"of_organization": row.organization_id, "of_group": row.id}
    members = [member.user_id for member in connection.execute(_members_of, wanted)]
    return _group.of_row(row, members=_sorted(members))


def _sorted(members: Iterable[str]) -> tuple[UserId, ...]:
    return tuple(UserId(member) for member in sorted(members))
