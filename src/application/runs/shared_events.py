"""Events of runs for many watchers: those woken together share one read."""

import asyncio
from typing import TypeAlias

from application.runs.ports import RunReader
from domain.ids import OrganizationId, RunId
from domain.runs.events import RunEvent

_Wanted: TypeAlias = tuple[OrganizationId, RunId, int, int]


class SharedEvents:
    """Rules:
    - Watchers that want the same events at the same moment share one read of the store and get the
      same objects.
    - No watcher gets events that were read before its request.
    """

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs
        self._about_to_look: dict[_Wanted, asyncio.Task[tuple[RunEvent, ...]]] = {}

    async def after(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Stored events with a higher seq, in order, up to `limit`. A watcher that leaves does not
        affect the others."""
        wanted = (organization_id, run_id, after_seq, limit)
        look = self._about_to_look.get(wanted)
        if look is None:
            # The task starts with the next round of the loop: watchers woken in this round share
            # it.
            look = asyncio.create_task(self._look(wanted))
            look.add_done_callback(_heard)
            self._about_to_look[wanted] = look
        return await asyncio.shield(look)

    async def _look(self, wanted: _Wanted) -> tuple[RunEvent, ...]:
        del self._about_to_look[wanted]
        organization_id, run_id, after_seq, limit = wanted
        return await self._runs.events(organization_id, run_id, after_seq=after_seq, limit=limit)


def _heard(look: asyncio.Task[tuple[RunEvent, ...]]) -> None:
    """Retrieve the error: all watchers may have left."""
    if not look.cancelled():
        look.exception()
