"""Re-encryption of the provider's items of messages. Their rows name the key, so that a step reads
only what it renews."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, func, select, update

from domain.errors import ServiceError
from infrastructure.persistence.secrets.box import KeyedBox, key_name
from infrastructure.persistence.tables import message

ITEMS_IN_A_STEP = 50
"""Items may have a megabyte each."""

_is_stale = message.c.items_key != bindparam("newest")
_count = select(func.count()).select_from(message).where(_is_stale)
_stale = (
    select(message.c.thread_id, message.c.position, message.c.provider_items)
    .where(_is_stale)
    .limit(bindparam("at_most"))
)
_renew = update(message).where(
    message.c.thread_id == bindparam("of_thread"), message.c.position == bindparam("at_position"), _is_stale
)


def count_stale_items(connection: Connection, box: KeyedBox) -> int:
    """Messages with items under older keys."""
    return int(connection.execute(_count, {"newest": key_name(box)}).scalar_one())


def renew_items(connection: Connection, box: KeyedBox, limit: int) -> int:
    """Encrypt some items with the newest key. Items that no key decrypts are removed: their
    messages are sent neutrally already. Returns the number of messages."""
    newest = key_name(box)
    rows = connection.execute(_stale, {"newest": newest, "at_most": min(limit, ITEMS_IN_A_STEP)}).all()
    for row in rows:
        try:
            renewed: Mapping[str, object] = {
                "items_key": newest,
                "provider_items": box.encrypt(box.decrypt(row.provider_items)),
            }
        except ServiceError:
            renewed = {"items_key": None, "provider_items": None}
        wanted = {"of_thread": row.thread_id, "at_position": row.position, "newest": newest}
        connection.execute(_renew.values(**renewed), wanted)
    return len(rows)
