"""Deliveries of webhooks that belong to no run, for the revision that lets
`webhook_delivery.run_id` be NULL. Code of before stores a run with each delivery. It claims those
without one too, cannot read them, and sets them aside for an hour."""

import sqlalchemy as sa
from alembic import op

_TABLE = "webhook_delivery"
_PARENTS = {"workflow_run_id": "workflow_run", "server_id": "mcp_server"}
_BY_RUN = ("ix_webhook_delivery_run_id_created_at_id", ["run_id", "created_at", "id"], None)
_OPEN = ("ix_webhook_delivery_open", ["next_attempt_at", "id"], sa.text("state IN ('pending', 'delivering')"))


def permit() -> None:
    """With columns for what a delivery is about instead. SQLite copies the table, and would create
    its indexes in any order."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    if is_sqlite:
        for name, _, _ in (_BY_RUN, _OPEN):
            op.drop_index(name, _TABLE)
    with op.batch_alter_table(_TABLE) as batch:
        batch.alter_column("run_id", existing_type=sa.Text(), nullable=True)
        for column, parent in _PARENTS.items():
            batch.add_column(sa.Column(column, sa.Text(), nullable=True))
            batch.create_foreign_key(f"fk_{_TABLE}_{column}_{parent}", parent, [column], ["id"], ondelete="CASCADE")
    if is_sqlite:
        for name, columns, where in (_BY_RUN, _OPEN):
            op.create_index(name, _TABLE, columns, sqlite_where=where)
    for column in _PARENTS:
        op.create_index(f"ix_{_TABLE}_{column}", _TABLE, [column])


def forbid() -> None:
    op.execute("DELETE FROM webhook_delivery WHERE run_id IS NULL")
    for column in _PARENTS:
        op.drop_index(f"ix_{_TABLE}_{column}", _TABLE)
    with op.batch_alter_table(_TABLE) as batch:
        for column, parent in _PARENTS.items():
            batch.drop_constraint(f"fk_{_TABLE}_{column}_{parent}", type_="foreignkey")
            batch.drop_column(column)
        batch.alter_column("run_id", existing_type=sa.Text(), nullable=False)
