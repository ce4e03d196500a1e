"""All encrypted columns of the schema, and their re-encryption after a key change. Items of
messages, which are many and large: `rotated_items.py`."""

from typing import Any, Protocol

from sqlalchemy import Column, Connection, LargeBinary, Table, bindparam, select, update

from application.secrets.ports import Reencryption
from domain.errors import ServiceError
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.secrets.box import KeyedBox
from infrastructure.persistence.secrets.rotated_items import count_stale_items, renew_items
from infrastructure.persistence.tables import (
    agent_version,
    audit_key,
    gateway_note,
    identity_provider,
    mcp_server,
    model_provider,
    oauth_authorization,
    oauth_grant,
    person_grant,
    push_config,
    run_request,
    schedule,
    secret,
    tool_call,
    webhook_key,
    workflow_tool,
)

ENCRYPTED: tuple["Column[bytes]", ...] = (
    mcp_server.c.secrets,
    secret.c.value,
    model_provider.c.api_key,
    model_provider.c.deployment_keys,
    identity_provider.c.client_secret,
    oauth_grant.c.sealed,
    person_grant.c.sealed,
    oauth_authorization.c.sealed,
    tool_call.c.input,
    agent_version.c.canary_tokens,
    audit_key.c.secret,
    webhook_key.c.secret,
    workflow_tool.c.sealed,
    workflow_tool.c.bound,
    gateway_note.c.sealed,
    gateway_note.c.answer,
    run_request.c.webhook_url,
    schedule.c.webhook_url,
    push_config.c.sealed,
)
"""A missing column here loses its values when the old key is deleted."""

LOSABLE: frozenset["Column[bytes]"] = frozenset({audit_key.c.secret})
"""Columns where an undecryptable value is skipped instead of stopping the rotation: it cannot be
stored again, and its seals are distinguished by its id."""


class RotatingBox(KeyedBox, Protocol):
    """Encrypts with the newest of its keys. `decrypt` raises INTERNAL `secret_undecryptable`
    without the matching key."""

    def is_current(self, sealed: bytes, /) -> bool:
        """Whether a value is encrypted with the newest key."""


class SqlSecretVault:
    """The `SecretVault` port.

    Values are encrypted on the event loop when their unit of work is submitted, and units run in
    that order. So once a *write* finds no value under an older key, none can follow.
    """

    def __init__(self, *, database: Database, box: RotatingBox) -> None:
        self._database = database
        self._box = box

    async def reencrypt(self, limit: int) -> Reencryption:
        stale = await self._database.read(self._stale, scope=SYSTEM)

        items = await self._database.read(self._stale_items, scope=SYSTEM)

        def unit(connection: Connection) -> int:
            renewed = sum(self._renew(connection, old) for old in stale[:limit])
            return renewed + renew_items(connection, self._box, max(0, limit - len(stale)))

        reencrypted = await self._database.write(unit, scope=SYSTEM) if stale or items else 0
        remaining = len(stale) + items - reencrypted
        if remaining == 0:
            remaining = await self._database.write(
                lambda connection: len(self._stale(connection)) + self._stale_items(connection), scope=SYSTEM
            )
        return Reencryption(reencrypted=reencrypted, remaining=remaining)

    def _stale_items(self, connection: Connection) -> int:
        return count_stale_items(connection, self._box)

    def _stale(self, connection: Connection) -> "list[_Sealed]":
        return [
            old
            for column in ENCRYPTED
            for old in _all(connection, column)
            if not self._box.is_current(old.sealed) and (column not in LOSABLE or self._opens(old.sealed))
        ]

    def _opens(self, sealed: bytes) -> bool:
        try:
            self._box.decrypt(sealed)
        except ServiceError:
            return False
        return True

    def _renew(self, connection: Connection, old: "_Sealed") -> int:
        renewed = self._box.encrypt(self._box.decrypt(old.sealed))
        return connection.execute(_exchange(old.column), {**old.key, "old": old.sealed, "new": renewed}).rowcount


class _Sealed:
    """The place of a value under an older key."""

    def __init__(self, column: "Column[bytes]", key: dict[str, object], sealed: bytes) -> None:
        self.column = column
        self.key = key
        self.sealed = sealed


def _all(connection: Connection, column: "Column[bytes]") -> "list[_Sealed]":
    keys = list(_table(column).primary_key.columns)
    rows = connection.execute(select(column.label("sealed"), *keys).where(column.is_not(None))).mappings()
    return [_Sealed(column, {f"key_{key.name}": row[key.name] for key in keys}, row["sealed"]) for row in rows]


def _table(column: "Column[bytes]") -> Table:
    assert isinstance(column.table, Table)
    return column.table


def _exchange(column: "Column[bytes]") -> Any:
    """Replace a value if it is unchanged: a concurrent change is already under the newest key."""
    table = _table(column)
    return (
        update(table)
        .where(
            *(key == bindparam(f"key_{key.name}") for key in table.primary_key.columns),
            column == bindparam("old", type_=LargeBinary),
        )
        .values({column: bindparam("new", type_=LargeBinary)})
    )
