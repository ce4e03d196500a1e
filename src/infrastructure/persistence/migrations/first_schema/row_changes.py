"""Notifications of changes to cached rows, sent by the changing transaction. PostgreSQL only. See
ADR 0015."""

from alembic import op

_EVERY_CHANGE = "INSERT OR UPDATE OR DELETE"
# `last_used_at` of a key is written often and not cached.
_CHANGES_OF_KEYS = "UPDATE OF role, platform, revoked_at, expires_at, rate_calls, rate_per_s OR DELETE"
_NOTIFIED = {
    "organization": ("id", _EVERY_CHANGE),
    "api_key": ("organization_id", _CHANGES_OF_KEYS),
    "secret": ("organization_id", _EVERY_CHANGE),
    "model_provider": ("organization_id", _EVERY_CHANGE),
    "agent": ("organization_id", _EVERY_CHANGE),
    "mcp_server": ("organization_id", _EVERY_CHANGE),
    "gateway_session": ("organization_id", "UPDATE OF revoked_at, expires_at OR DELETE"),
    # One row for a catalog of many definitions, written with each of them.
    "mcp_server_state": ("organization_id", _EVERY_CHANGE),
}
# Rows of these are deleted only with their server or session, which has its own notification.
_NOTIFIED_WHILE_THERE = {
    # A claim alone does not change the tokens.
    "oauth_grant": "INSERT OR UPDATE OF sealed",
    "gateway_client": "UPDATE",
}


def create() -> None:
    """Create the triggers. Such writes are rare; PostgreSQL sends equal notifications of one
    transaction once."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, (organization, changes) in _NOTIFIED.items():
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
        _trigger(table, changes)
    for table, changes in _NOTIFIED_WHILE_THERE.items():
        op.execute(
            f"CREATE FUNCTION tell_{table}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
            "BEGIN\n"
            f"    PERFORM pg_notify('dragoman_rows', '{table} ' || NEW.organization_id);\n"
            "    RETURN NULL;\n"
            "END $$"
        )
        _trigger(table, changes)


def _trigger(table: str, changes: str) -> None:
    op.execute(f"CREATE TRIGGER tell_{table} AFTER {changes} ON {table} FOR EACH ROW EXECUTE FUNCTION tell_{table}()")
