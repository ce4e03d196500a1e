"""URLs of webhooks, encrypted: they may hold a token or a password, and stood in clear beside the rest of their webhook."""

import json
import re
from collections.abc import Callable

import sqlalchemy as sa
from alembic import context, op

from infrastructure.persistence.migrations.row_security import as_system

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_AT_ONCE = 500
_TABLES = (
    sa.table("run_request", sa.column("run_id"), sa.column("webhook"), sa.column("webhook_url", sa.LargeBinary())),
    sa.table("schedule", sa.column("id"), sa.column("webhook"), sa.column("webhook_url", sa.LargeBinary())),
)
_PORTS = {"http": "80", "https": "443"}
_AUTHORITY = re.compile(r"(https?)://(?:[^/?#@]*@)?(\[[^\]/]*\]|[^:/?#]*)(?::(\d+))?", re.IGNORECASE)


def upgrade() -> None:
    """What is stored is encrypted; host and port stay readable. Raises RuntimeError where there is something to encrypt and
    nothing to do it with."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        # Or what was cut out of a page would stay in the file.
        connection.execute(sa.text("PRAGMA secure_delete = ON"))
    for table in _TABLES:
        op.add_column(table.name, sa.Column("webhook_url", sa.LargeBinary(), nullable=True))
    with as_system(connection):
        for table in _TABLES:
            _seal_all(connection, table, context.config.attributes.get("seal"))


def downgrade() -> None:
    """Webhooks are forgotten: where they are nobody can read without the secret key."""
    connection = op.get_bind()
    with as_system(connection):
        for table in _TABLES:
            connection.execute(sa.update(table).where(table.c.webhook_url.is_not(None)).values(webhook=None))
    for table in _TABLES:
        op.drop_column(table.name, "webhook_url")


def _seal_all(connection: sa.Connection, table: sa.TableClause, seal: Callable[[bytes], bytes] | None) -> None:
    key = next(iter(table.c))
    last = ""
    while rows := connection.execute(
        sa.select(key, table.c.webhook).where(table.c.webhook.is_not(None), key > last).order_by(key).limit(_AT_ONCE)
    ).all():
        if seal is None:
            raise RuntimeError("URLs of webhooks are stored in clear, and nothing was given that encrypts them")
        for id_, text in rows:
            webhook = json.loads(text)
            url = webhook.pop("url")
            note = {"receiver": _receiver_of(url), **webhook}
            sealed = seal(url.encode("utf-8", "surrogatepass"))
            changed = {"webhook": json.dumps(note), "webhook_url": sealed}
            connection.execute(sa.update(table).where(key == id_).values(changed))
        last = rows[-1][0]


def _receiver_of(url: str) -> str:
    found = _AUTHORITY.match(url.strip())
    if found is None:
        return "?"
    scheme, host, port = found.groups()
    return f"{host.lower()}:{port or _PORTS[scheme.lower()]}"
