"""Grants of OAuth clients in SQL, with their sessions."""

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from application.gateway.authorization.ports import GrantChange, StoredGrant
from domain.audit.event import AuditEvent
from domain.gateway.client_grant import ClientGrant
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, OrganizationId
from domain.threads.thread import Thread
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.gateway.store import insert_session, session_of
from infrastructure.persistence.tables import gateway_grant, gateway_session

_insert = gateway_grant.insert()
# Such a session ends with no run.
_sessions = select(gateway_session, gateway_session.c.revoked_at.label("ended_at"))
_session = _sessions.where(gateway_session.c.id == bindparam("of_session"))
_grant = select(gateway_grant).where(
    gateway_grant.c.organization_id == bindparam("of_organization"),
    gateway_grant.c.session_id == bindparam("of_session"),
)
_lock = _grant.with_for_update()
_change = update(gateway_grant).where(gateway_grant.c.session_id == bindparam("of_session"))
_renew = update(gateway_session).where(gateway_session.c.id == bindparam("of_session"))
_known = select(gateway_grant.c.session_id).where(gateway_grant.c.client_hash == bindparam("of_client")).limit(1)

_fields = row_fields(ClientGrant)
_changed = row_fields(ClientGrant, only={"redeemed_at", "family_hash", "refresh_hash"})


class SqlClientGrantStore:
    """The `ClientGrantStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, grant: ClientGrant, session: GatewaySession, audit: AuditEvent, *, thread: Thread) -> None:

        def unit(connection: Connection) -> None:
            insert_session(connection, session, thread)
            connection.execute(_insert, _fields.write(grant))
            record(connection, audit)

        await self._database.write(unit, scope=session.organization_id)

    async def of_code(self, code_hash: str) -> StoredGrant | None:
        return await self._find(gateway_grant.c.code_hash == code_hash)

    async def of_family(self, family_hash: str) -> StoredGrant | None:
        return await self._find(gateway_grant.c.family_hash == family_hash)

    async def of_token(self, token_hash: str) -> StoredGrant | None:
        token = select(gateway_session.c.id).where(gateway_session.c.token_hash == token_hash).scalar_subquery()
        return await self._find(gateway_grant.c.session_id == token)

    async def change(self, organization_id: OrganizationId, session_id: GatewaySessionId, decide: GrantChange) -> bool:
        wanted = {"of_organization": organization_id, "of_session": session_id}

        def unit(connection: Connection) -> bool:
            row = connection.execute(_lock, wanted).first()
            if row is None:
                return False
            session = session_of(connection.execute(_session, wanted).one())
            grant, renewed = decide(_fields.of_row(row), session)
            connection.execute(_change.values(_changed.write(grant)), wanted)
            tokens = {
                "token_hash": renewed.token_hash,
                "token_expires_at": renewed.token_expires_at,
                "expires_at": renewed.expires_at,
            }
            connection.execute(_renew.values(tokens), wanted)
            return True

        return await self._database.write(unit, scope=organization_id)

    async def is_known(self, client_hash: str) -> bool:
        wanted = {"of_client": client_hash}
        found = await self._database.read(lambda connection: connection.execute(_known, wanted).first(), scope=SYSTEM)
        return found is not None

    async def _find(self, condition: ColumnElement[bool]) -> StoredGrant | None:

        def unit(connection: Connection) -> StoredGrant | None:
            row = connection.execute(select(gateway_grant).where(condition)).first()
            if row is None:
                return None
            grant = _fields.of_row(row)
            return grant, session_of(connection.execute(_session, {"of_session": grant.session_id}).one())

        return await self._database.read(unit, scope=SYSTEM)
