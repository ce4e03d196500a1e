"""Groups that organizations manage, in SQL, and the groups that a person is in."""

from collections.abc import Collection
from typing import TypeVar

from sqlalchemy import Connection, bindparam, delete, func, select, union, update

from application.groups.ports import OrganizationGroupChange
from domain.audit.event import AuditEvent
from domain.errors import conflict, existing
from domain.identity.organization_group import MAX_GROUPS, OrganizationGroup, group_name_taken, group_owns
from domain.identity.user import User, UserStatus
from domain.ids import GroupId, OrganizationId, UserId
from domain.teams import Teams, sees
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database, Unit, duplicates_as
from infrastructure.persistence.identity.group_owners import owned_by_group
from infrastructure.persistence.tables import (
    organization,
    organization_group,
    organization_group_member,
    user_account,
    user_group,
    user_group_member,
)

_T = TypeVar("_T")

_in_organization = organization_group.c.organization_id == bindparam("of_organization")
_of = (_in_organization, organization_group.c.id == bindparam("of_group"))
_all = select(organization_group).where(_in_organization).order_by(organization_group.c.name)
_lock = select(organization_group).where(*_of).with_for_update()
_change = update(organization_group).where(*_of)
_delete = delete(organization_group).where(*_of)
_count = select(func.count()).select_from(organization_group).where(_in_organization)
# Parallel additions are counted one after the other.
_lock_organization = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)

_member = organization_group_member.c
_members = select(organization_group_member).where(_member.organization_id == bindparam("of_organization"))
_members_of = _members.where(_member.group_id == bindparam("of_group"))
_drop_members = delete(organization_group_member).where(_member.group_id == bindparam("of_group"))
_of_user = (_member.organization_id == bindparam("of_organization"), _member.user_id == bindparam("of_user"))
_claimed = select(_member.group_id).where(*_of_user, _member.by_claim.is_(True))
_drop_claimed = delete(organization_group_member).where(
    *_of_user, _member.by_claim.is_(True), _member.group_id.in_(bindparam("of_groups", expanding=True))
)
_leave = delete(organization_group_member).where(*_of_user)
# Parallel sign-ins of a person say the same.
_insert_members = upsert(organization_group_member).on_conflict_do_nothing(["group_id", "user_id", "by_claim"])
_claimable = select(organization_group.c.id).where(
    _in_organization, organization_group.c.id.in_(bindparam("of_groups", expanding=True))
)
_users = select(user_account.c.id).where(
    user_account.c.organization_id == bindparam("of_organization"),
    user_account.c.status != UserStatus.REMOVED.value,
    user_account.c.id.in_(bindparam("of_users", expanding=True)),
)
_names = union(
    select(organization_group.c.name)
    .join(organization_group_member, _member.group_id == organization_group.c.id)
    .where(*_of_user),
    select(user_group.c.name)
    .join(user_group_member, user_group_member.c.group_id == user_group.c.id)
    .where(
        user_group_member.c.organization_id == bindparam("of_organization"),
        user_group_member.c.user_id == bindparam("of_user"),
    ),
)
_all_names = union(
    select(organization_group.c.name).where(_in_organization),
    select(user_group.c.name).where(user_group.c.organization_id == bindparam("of_organization")),
)

_group = row_fields(OrganizationGroup, without={"members", "members_by_claim"})


class SqlOrganizationGroupStore:
    """The ports `OrganizationGroupStore`, `ClaimedGroups`, `Memberships` and `KnownUsers`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, group: OrganizationGroup, audit: AuditEvent) -> None:
        wanted = {"of_organization": group.organization_id}

        def unit(connection: Connection) -> None:
            connection.execute(_lock_organization, wanted)
            if connection.execute(_count, wanted).scalar_one() >= MAX_GROUPS:
                raise conflict("too_many_groups", f"An organization has at most {MAX_GROUPS} groups.")
            connection.execute(organization_group.insert(), _group.write(group))
            _store_members(connection, group)
            record(connection, audit)

        await self._write(unit, group.organization_id)

    async def all(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        wanted = {"of_organization": organization_id}

        def read(connection: Connection) -> tuple[OrganizationGroup, ...]:
            members = connection.execute(_members, wanted).all()
            by_group: dict[str, list[AnyRow]] = {}
            for row in members:
                by_group.setdefault(row.group_id, []).append(row)
            return tuple(_of_row(row, by_group.get(row.id, [])) for row in connection.execute(_all, wanted))

        return await self._database.read(read, scope=organization_id)

    async def change(
        self,
        organization_id: OrganizationId,
        group_id: GroupId,
        decide: OrganizationGroupChange,
        *,
        teams: Teams = None,
    ) -> OrganizationGroup:
        wanted = {"of_organization": organization_id, "of_group": group_id}

        def unit(connection: Connection) -> OrganizationGroup:
            row = existing(connection.execute(_lock, wanted).first(), "group", group_id)
            stored = _of_row(row, connection.execute(_members_of, wanted).all())
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            if changed.name != stored.name:
                _refuse_owner(connection, organization_id, stored.name, teams)
            connection.execute(_change.values(_group.write(changed)), wanted)
            connection.execute(_drop_members, {"of_group": group_id})
            _store_members(connection, changed)
            record(connection, audit)
            return changed

        return await self._write(unit, organization_id)

    async def delete(
        self, organization_id: OrganizationId, group_id: GroupId, audit: AuditEvent, *, teams: Teams = None
    ) -> bool:
        wanted = {"of_organization": organization_id, "of_group": group_id}

        def unit(connection: Connection) -> bool:
            row = connection.execute(_lock, wanted).first()
            if row is None:
                return False
            _refuse_owner(connection, organization_id, row.name, teams)
            connection.execute(_delete, wanted)
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)

    async def strangers(self, organization_id: OrganizationId, users: Collection[UserId]) -> tuple[UserId, ...]:
        if not users:
            return ()
        wanted = {"of_organization": organization_id, "of_users": list(users)}
        known = await self._database.read(
            lambda connection: set(connection.execute(_users, wanted).scalars()), scope=organization_id
        )
        return tuple(user for user in users if user not in known)

    async def with_claims(self, organization_id: OrganizationId) -> tuple[OrganizationGroup, ...]:
        rows = await self._database.read(
            lambda connection: connection.execute(_all, {"of_organization": organization_id}).all(),
            scope=organization_id,
        )
        return tuple(group for row in rows if (group := _of_row(row, ())).claims)

    async def set_claimed(self, user: User, groups: Collection[GroupId]) -> None:
        wanted = {"of_organization": user.organization_id, "of_user": user.id}

        def unit(connection: Connection) -> None:
            # Only the difference: each change of members is announced to all processes.
            stored = set(connection.execute(_claimed, wanted).scalars())
            if left := stored - set(groups):
                connection.execute(_drop_claimed, {**wanted, "of_groups": list(left)})
            # A group may have been deleted meanwhile.
            joined = [*set(groups) - stored]
            found = connection.execute(_claimable, {**wanted, "of_groups": joined}).scalars().all() if joined else ()
            _insert(connection, user.organization_id, [(group, user.id, True) for group in found])

        await self._database.write(unit, scope=user.organization_id)

    async def groups_of(self, organization_id: OrganizationId, user_id: UserId) -> frozenset[str]:
        wanted = {"of_organization": organization_id, "of_user": user_id}
        names = await self._database.read(
            lambda connection: connection.execute(_names, wanted).scalars().all(), scope=organization_id
        )
        return frozenset(names)

    async def group_names(self, organization_id: OrganizationId) -> frozenset[str]:
        names = await self._database.read(
            lambda connection: connection.execute(_all_names, {"of_organization": organization_id}).scalars().all(),
            scope=organization_id,
        )
        return frozenset(names)

    async def leave_all(self, organization_id: OrganizationId, user_id: UserId) -> None:
        wanted = {"of_organization": organization_id, "of_user": user_id}

        def unit(connection: Connection) -> None:
            connection.execute(_leave, wanted)

        await self._database.write(unit, scope=organization_id)

    async def _write(self, unit: Unit[_T], organization_id: OrganizationId) -> _T:
        with duplicates_as(group_name_taken()):
            return await self._database.write(unit, scope=organization_id)


def _refuse_owner(connection: Connection, organization_id: OrganizationId, name: str, teams: Teams) -> None:
    if owned := owned_by_group(connection, organization_id, name):
        raise group_owns(name, owned, named=sees(teams, name))


def _store_members(connection: Connection, group: OrganizationGroup) -> None:
    rows = [(group.id, user, False) for user in group.members]
    rows += [(group.id, user, True) for user in group.members_by_claim]
    _insert(connection, group.organization_id, rows)


def _insert(connection: Connection, organization_id: str, rows: Collection[tuple[str, str, bool]]) -> None:
    if rows:
        connection.execute(
            _insert_members,
            [
                {"group_id": group, "user_id": user, "by_claim": by_claim, "organization_id": organization_id}
                for group, user, by_claim in rows
            ],
        )


def _of_row(row: AnyRow, members: Collection[AnyRow]) -> OrganizationGroup:
    def those(*, by_claim: bool) -> tuple[UserId, ...]:
        return tuple(sorted(UserId(member.user_id) for member in members if bool(member.by_claim) is by_claim))

    return _group.of_row(row, members=those(by_claim=False), members_by_claim=those(by_claim=True))
