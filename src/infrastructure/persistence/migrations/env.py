"""Runs Alembic's revisions: on a given connection, in one transaction."""

from alembic import context

from infrastructure.persistence.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite changes most of a table only by copying it.
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
