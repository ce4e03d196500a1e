"""The stored messages of a thread, page after page."""

from collections.abc import AsyncGenerator

from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.threads.queries import ListMessages
from domain.identity.api_key import Principal
from domain.ids import ThreadId
from domain.threads.message import Message


async def stored_messages(
    list_messages: ListMessages, principal: Principal, thread_id: ThreadId
) -> AsyncGenerator[Message, None]:
    """Oldest first. Raises NOT_FOUND."""
    cursor = None
    while True:
        page = await list_messages.execute(principal, thread_id, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
        for message in page.items:
            yield message
        cursor = page.next_cursor
        if cursor is None:
            return
