"""Users in SQL."""

from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, case, delete, select, update

from application.identity.ports import UserChange
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import existing
from domain.identity.user import User, UserStatus
from domain.ids import OrganizationId, UserId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import newest_page
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import identity_provider, person_grant, user_account

_of = (user_account.c.organization_id == bindparam("of_organization"), user_account.c.id == bindparam("of_user"))
_get = select(user_account).where(*_of)
_lock = _get.with_for_update()
_admitted = _get.where(
    user_account.c.status == UserStatus.ACTIVE.value,
    select(identity_provider.c.id).where(identity_provider.c.id == user_account.c.provider_id).exists(),
)
_find = select(user_account).where(
    and_(
        user_account.c.organization_id == bindparam("of_organization"),
        user_account.c.issuer == bindparam("of_issuer"),
        user_account.c.subject == bindparam("of_subject"),
    )
)
_add = upsert(user_account).on_conflict_do_nothing(["organization_id", "issuer", "subject"])
_change = update(user_account).where(*_of)
_delete_grants = delete(person_grant).where(
    person_grant.c.organization_id == bindparam("of_organization"), person_grant.c.person_id == bindparam("of_user")
)
_change_active = _change.where(user_account.c.status == UserStatus.ACTIVE.value)
_change_accessed = _change_active.where(
    user_account.c.issuer == bindparam("of_issuer"), user_account.c.subject == bindparam("of_subject")
)

_user = row_fields(User)
_seen = row_fields(User, only={"provider_id", "email", "name", "role", "custom_role", "last_sign_in_at"})


class SqlUserStore:
    """The ports `UserStore` and `UserAccess`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        wanted = _wanted(organization_id, user_id)
        row = await self._database.read(
            lambda connection: connection.execute(_get, wanted).first(), scope=organization_id
        )
        return None if row is None else _user.of_row(row)

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, status: UserStatus | None = None
    ) -> Page[User]:
        stored = user_account.c.status
        statement = select(user_account).where(
            user_account.c.organization_id == organization_id,
            stored != UserStatus.REMOVED.value if status is None else stored == status.value,
        )
        return await self._database.read(
            newest_page(statement, request, user_account.c, _user.of_row), scope=organization_id
        )

    async def change(self, organization_id: OrganizationId, user_id: UserId, decide: UserChange) -> User:
        wanted = _wanted(organization_id, user_id)

        def unit(connection: Connection) -> User:
            stored = _user.of_row(existing(connection.execute(_lock, wanted).first(), "user", user_id))
            decided = decide(stored)
            if decided is None:
                return stored
            changed, audit = decided
            connection.execute(_change.values(_user.write(changed)), wanted)
            if changed.status is UserStatus.REMOVED:
                connection.execute(_delete_grants, wanted)
            record(connection, audit)
            return changed

        return await self._database.write(unit, scope=organization_id)

    async def admitted(self, organization_id: OrganizationId, user_id: UserId) -> User | None:
        # The identity provider may belong to another organization.
        wanted = _wanted(organization_id, user_id)
        row = await self._database.read(lambda connection: connection.execute(_admitted, wanted).first(), scope=SYSTEM)
        return None if row is None else _user.of_row(row)

    async def find(self, organization_id: OrganizationId, issuer: str, subject: str) -> User | None:
        wanted = {"of_organization": organization_id, "of_issuer": issuer, "of_subject": subject}
        row = await self._database.read(
            lambda connection: connection.execute(_find, wanted).first(), scope=organization_id
        )
        return None if row is None else _user.of_row(row)

    async def add(self, user: User, audit: AuditEvent) -> User:
        wanted = {"of_organization": user.organization_id, "of_issuer": user.issuer, "of_subject": user.subject}

        def unit(connection: Connection) -> User:
            connection.execute(_add, _user.write(user))
            stored = _user.of_row(connection.execute(_find, wanted).one())
            if stored.id == user.id:
                record(connection, audit)
            return stored

        return await self._database.write(unit, scope=user.organization_id)

    async def accessed(self, user: User, at: datetime) -> bool:
        wanted = {**_wanted(user.organization_id, user.id), "of_issuer": user.issuer, "of_subject": user.subject}
        statement = _change_accessed.values(last_sign_in_at=at)
        changed = await self._database.write(
            lambda connection: connection.execute(statement, wanted).rowcount, scope=user.organization_id
        )
        return changed > 0

    async def saw(self, user: User, audit: AuditEvent) -> None:
        wanted = _wanted(user.organization_id, user.id)

        def unit(connection: Connection) -> None:
            # An admin may have fixed the role since the caller read it.
            fixed = user_account.c.role_fixed
            role = case((fixed, user_account.c.role), else_=user.role.value)
            custom_role = case((fixed, user_account.c.custom_role), else_=user.custom_role)
            values = {**_seen.write(user), "role": role, "custom_role": custom_role}
            changed = connection.execute(_change_active.values(values), wanted).rowcount
            if changed:
                record(connection, audit)

        await self._database.write(unit, scope=user.organization_id)


def _wanted(organization_id: OrganizationId, user_id: UserId) -> dict[str, str]:
    return {"of_organization": organization_id, "of_user": user_id}
