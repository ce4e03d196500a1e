"""Row security for migrations on PostgreSQL: a migration that creates a table protects it. See ADR
0011. On SQLite these functions do nothing."""

from alembic import op
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from infrastructure.persistence.engine.postgres.roles import (
    ORGANIZATION_SETTING,
    REQUEST_ROLE,
    SYSTEM_ROLE,
    roles_refused,
)

EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
_INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL, Appendix A."""

_exists = text("SELECT count(*) FROM pg_roles WHERE rolname = :role")
# From version 16 on, the creator of a role is its member, but may not act as it.
_may_act = text(
    "SELECT pg_has_role(current_user, CAST(:role AS name),"
    " CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)"
)
# Roles belong to the server: another database's migration may create them at the same time.
_if_still_missing = "DO $$ BEGIN {statement}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"


def protect(table: str, *, organization: str | None = "organization_id", requests_may: str = EVERYTHING) -> None:
    """Limit requests to the rows of `table` with their organization in the column `organization`;
    to no rows if that is None. `requests_may` are their privileges on these rows."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY system_work ON {table} TO {SYSTEM_ROLE} USING (true) WITH CHECK (true)")
    op.execute(f"GRANT {EVERYTHING} ON {table} TO {SYSTEM_ROLE}")
    if organization is None:
        return
    theirs = f"{organization} = current_setting('{ORGANIZATION_SETTING}', true)"
    op.execute(f"CREATE POLICY own_organization ON {table} TO {REQUEST_ROLE} USING ({theirs}) WITH CHECK ({theirs})")
    op.execute(f"GRANT {requests_may} ON {table} TO {REQUEST_ROLE}")


def ensure_roles(connection: Connection, *roles: str) -> None:
    """Create missing roles, and let the current user act as each. Raises UNAVAILABLE
    `database_roles_missing` if the user may not."""
    try:
        for role in roles:
            if not connection.execute(_exists, {"role": role}).scalar_one():
                _execute_unless_done(connection, f"CREATE ROLE {role} NOLOGIN")
            if not connection.execute(_may_act, {"role": role}).scalar_one():
                _execute_unless_done(connection, f"GRANT {role} TO CURRENT_USER")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        create = " ".join(f"CREATE ROLE {role} NOLOGIN;" for role in roles)
        raise roles_refused(
            "The database user that migrates may not create the roles that row security needs, or may not act as them."
            f" Let an administrator run, leaving out what is there: {create} GRANT {', '.join(roles)} TO"
            f" {connection.dialect.identifier_preparer.quote(_user_of(connection))};"
        ) from error


def _execute_unless_done(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(_if_still_missing.format(statement=statement))


def _user_of(connection: Connection) -> str:
    return connection.engine.url.username or "that user"
