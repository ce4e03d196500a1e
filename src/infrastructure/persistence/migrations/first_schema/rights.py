"""Roles of row security, and their privileges outside the tables of slices. PostgreSQL only. See
ADR 0011."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.migrations.row_security import ensure_roles


def create_roles() -> None:
    """Create the roles that are missing. Raises UNAVAILABLE `database_roles_missing`."""
    if op.get_bind().dialect.name != "sqlite":
        ensure_roles(op.get_bind(), REQUEST_ROLE, SYSTEM_ROLE)


def grant() -> None:
    """Let both roles use the schema and the sequence of source chunks; let every user read the
    revision."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(f"GRANT USAGE ON SCHEMA {_schema()} TO {REQUEST_ROLE}, {SYSTEM_ROLE}")
    op.execute(f"GRANT USAGE ON SEQUENCE source_chunk_id_seq TO {REQUEST_ROLE}, {SYSTEM_ROLE}")
    # A start reads the revision before it takes a role; readiness proves that a write succeeds.
    op.execute("GRANT SELECT ON alembic_version TO PUBLIC")
    op.execute(f"GRANT UPDATE ON alembic_version TO {SYSTEM_ROLE}")


def _schema() -> str:
    return str(op.get_bind().execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one())
