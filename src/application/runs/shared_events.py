"""Events of runs for many watchers at once: those who were woken together look together."""

import asyncio
from typing import TypeAlias

from application.runs.ports import RunReader
from domain.ids import OrganizationId, RunId
from domain.runs.events import RunEvent

_Wanted: TypeAlias = tuple[OrganizationId, RunId, int, int]


class SharedEvents:
    """Rules: watchers of a run that want the events after the same one, in the same moment, share one look at the store and
    get the very same events; nobody is given what was read before he asked."""

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs
        self._about_to_look: dict[_Wanted, asyncio.Task[tuple[RunEvent, ...]]] = {}

    async def after(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Stored events with a higher seq, in order, up to `limit`. A watcher that leaves takes nothing from the others."""
        wanted = (organization_id, run_id, after_seq, limit)
        look = self._about_to_look.get(wanted)
        if look is None:
            # A task begins with the loop's next round: whoever was woken in this one comes along.
            look = asyncio.create_task(self._look(wanted))
            look.add_done_callback(_heard)
            self._about_to_look[wanted] = look
        return await asyncio.shield(look)

    async def _look(self, wanted: _Wanted) -> tuple[RunEvent, ...]:
        del self._about_to_look[wanted]
        organization_id, run_id, after_seq, limit = wanted
        return await self._runs.events(organization_id, run_id, after_seq=after_seq, limit=limit)


def _heard(look: asyncio.Task[tuple[RunEvent, ...]]) -> None:
    """A failure that all who waited for it have left is nobody's."""
    if not look.cancelled():
        look.exception()
