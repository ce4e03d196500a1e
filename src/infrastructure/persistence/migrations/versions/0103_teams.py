"""Teams: groups that own agents, MCP servers, threads and their runs."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0114"
branch_labels = None
depends_on = None

_LATE = ("agent", "mcp_server", "run")
_MEMBERS = ("organization_group_member", "user_group_member")
_GROUPS = ("organization_group", "user_group")


def upgrade() -> None:
    op.add_column("thread", sa.Column("team", sa.Text(), nullable=True))
    owned = sa.text("team IS NOT NULL")
    op.create_index("ix_thread_team", "thread", ["organization_id", "team"], sqlite_where=owned, postgresql_where=owned)
    _notify()
    for table in _LATE:  # locked until the end, so after the index, which reads all threads
        op.add_column(table, sa.Column("team", sa.Text(), nullable=True))


def downgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        for table in (*_MEMBERS, *_GROUPS):
            op.execute(f"DROP TRIGGER tell_group_member ON {table}")
        op.execute("DROP FUNCTION tell_group_member()")
    op.drop_index("ix_thread_team", "thread")
    for table in ("run", "thread", "mcp_server", "agent"):
        op.drop_column(table, "team")


def _notify() -> None:
    """Caches of callers depend on their groups (ADR 0015)."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.execute(
        "CREATE FUNCTION tell_group_member() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN\n"
        "    IF TG_OP = 'DELETE' THEN\n"
        "        PERFORM pg_notify('dragoman_rows', 'group_member ' || OLD.organization_id);\n"
        "    ELSE\n"
        "        PERFORM pg_notify('dragoman_rows', 'group_member ' || NEW.organization_id);\n"
        "    END IF;\n"
        "    RETURN NULL;\n"
        "END $$"
    )
    for tables, events in ((_MEMBERS, "INSERT OR DELETE"), (_GROUPS, "UPDATE OR DELETE")):
        for table in tables:
            op.execute(
                f"CREATE TRIGGER tell_group_member AFTER {events} ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION tell_group_member()"
            )
