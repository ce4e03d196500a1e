"""Changes of rows that processes keep in memory are told to all of them, on PostgreSQL, by the transaction that makes them. See
ADR 0015."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_EVERY_CHANGE = "INSERT OR UPDATE OR DELETE"
# A use of a key is stored now and then, and is nobody's business.
_CHANGES_OF_KEYS = "UPDATE OF role, platform, revoked_at, expires_at, rate_calls, rate_per_s OR DELETE"
_TOLD = {
    "organization": ("id", _EVERY_CHANGE),
    "api_key": ("organization_id", _CHANGES_OF_KEYS),
    "secret": ("organization_id", _EVERY_CHANGE),
    "model_provider": ("organization_id", _EVERY_CHANGE),
    "agent": ("organization_id", _EVERY_CHANGE),
    "mcp_server": ("organization_id", _EVERY_CHANGE),
    "gateway_session": ("organization_id", "UPDATE OF revoked_at, expires_at OR DELETE"),
    # One row for a catalog of many definitions, written whenever any of them is.
    "mcp_server_state": ("organization_id", _EVERY_CHANGE),
}


def upgrade() -> None:
    """Tell. Such writes are rare; of several in one transaction that say the same, PostgreSQL sends one."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, (organization, changes) in _TOLD.items():
        op.execute(
            f"CREATE FUNCTION tell_{table}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
            "BEGIN\n"
            "    IF TG_OP = 'DELETE' THEN\n"
            f"        PERFORM pg_notify('dragoman_rows', '{table} ' || OLD.{organization});\n"
            "    ELSE\n"
            f"        PERFORM pg_notify('dragoman_rows', '{table} ' || NEW.{organization});\n"
            "    END IF;\n"
            "    RETURN NULL;\n"
            "END $$"
        )
        op.execute(
            f"CREATE TRIGGER tell_{table} AFTER {changes} ON {table} FOR EACH ROW EXECUTE FUNCTION tell_{table}()"
        )


def downgrade() -> None:
    """Say nothing."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table in _TOLD:
        op.execute(f"DROP TRIGGER tell_{table} ON {table}")
        op.execute(f"DROP FUNCTION tell_{table}()")
