"""The provider's items of messages, encrypted: columns `items_key` and `provider_items` of
`message`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from domain.errors import ServiceError
from domain.ids import MessageId, OrganizationId
from domain.threads.message import Message
from domain.threads.provider_items import ProviderItems
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.secrets.box import KeyedBox, key_name

logger = logging.getLogger(__name__)

NO_ITEMS: Mapping[str, object] = {"items_key": None, "provider_items": None}

_SMALL = 64 * 1024
"""Items of up to this size take less than a millisecond."""

SealedItems = Mapping[MessageId, Mapping[str, object]]
"""The two columns, for each message that has items."""


async def sealed_items(organization_id: OrganizationId, messages: Sequence[Message], box: KeyedBox) -> SealedItems:
    """Seal just before storing: keys may change. Large items are encrypted in a thread."""
    with_items = [message for message in messages if message.items is not None]
    if not with_items:
        return {}
    if sum([message.items.size for message in messages if message.items is not None]) <= _SMALL:
        return _sealed(organization_id, messages, box)
    return await asyncio.to_thread(_sealed, organization_id, messages, box)


def _sealed(organization_id: OrganizationId, messages: Sequence[Message], box: KeyedBox) -> SealedItems:
    while True:
        name = key_name(box)
        sealed = {
            message.id: {
                "items_key": name,
                "provider_items": box.encrypt(
                    _bound_to(organization_id, message.id) + message.items.origin.encode() + b"\n" + message.items.data
                ),
            }
            for message in messages
            if message.items is not None
        }
        if key_name(box) == name:  # the event loop may change keys meanwhile
            return sealed


def items_of(row: AnyRow, box: KeyedBox) -> ProviderItems | None:
    """The items of a row. None for items that cannot be decrypted or are of another message: the
    message is then sent neutrally."""
    if row.provider_items is None:
        return None
    bound_to = _bound_to(OrganizationId(row.organization_id), MessageId(row.id))
    try:
        opened = box.decrypt(row.provider_items)
    except ServiceError:
        opened = b""
    if not opened.startswith(bound_to):
        logger.warning(
            "provider items of a message cannot be decrypted; the message is sent neutrally",
            extra={"message_id": row.id, "thread_id": row.thread_id, "organization_id": row.organization_id},
        )
        return None
    origin, _, data = opened[len(bound_to) :].partition(b"\n")
    return ProviderItems(origin=origin.decode(), data=data)


def _bound_to(organization_id: OrganizationId, message_id: MessageId) -> bytes:
    return f"{organization_id} {message_id}\n".encode()
