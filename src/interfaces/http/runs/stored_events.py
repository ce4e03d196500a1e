"""The stored events of a run, page after page."""

from collections.abc import AsyncGenerator

from application.runs.queries import GetRunEvents
from application.system.pages import MAX_PAGE_SIZE
from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.runs.events import RunEvent


async def stored_events(
    get_run_events: GetRunEvents, principal: Principal, run_id: RunId, *, after_seq: int = 0
) -> AsyncGenerator[tuple[RunEvent, ...], None]:
    """Raises NOT_FOUND."""
    after = after_seq
    while True:
        page = await get_run_events.execute(principal, run_id, after_seq=after, limit=MAX_PAGE_SIZE)
        yield tuple(page.items)
        if page.next_cursor is None:
            return
        after = int(page.next_cursor)
