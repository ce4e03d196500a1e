"""Coalesces the frequent events of a run (deltas, progress) so that a burst costs one write, not one each."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from domain.json_value import JsonObject
from domain.runs.events import NewEvent, RunEventType

COALESCING_S = 0.05


class EventBuffer:
    """Events leave in order, at most `interval_s` after they came; while a write is under way the next batch grows,
    so the
    pace follows the store. Deltas of one message become one event, of a call's progress only the newest is kept."""

    def __init__(
        self, write: Callable[[tuple[NewEvent, ...]], Awaitable[None]], *, interval_s: float = COALESCING_S
    ) -> None:
        self._write = write
        self._interval_s = interval_s
        self._pending: list[NewEvent] = []
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flush: asyncio.Task[None] | None = None

    def add(self, event: NewEvent) -> None:
        """Take an event; it is written soon, or leaves with the next `take`."""
        last = self._pending[-1] if self._pending else None
        if last is not None and _same_subject(last, event):
            if event.type is RunEventType.MESSAGE_DELTA:
                self._texts.append(cast(str, event.data["text"]))
            else:
                self._pending[-1] = event
        else:
            self._seal_text()
            self._pending.append(event)
            if event.type is RunEventType.MESSAGE_DELTA:
                self._texts = [cast(str, event.data["text"])]
        self._arm()

    async def take(self) -> tuple[NewEvent, ...]:
        """What is not written yet, to be written by the caller; waits for a write under way. Raises what that
        raised."""
        self._disarm()
        if self._flush is not None:
            await asyncio.shield(self._flush)
            self._flush = None
        self._disarm()
        return self._drained()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and (self._flush is None or self._flush.done()):
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._begin_flush)

    def _begin_flush(self) -> None:
        self._timer = None
        if self._flush is not None and self._flush.done() and self._flush.exception() is not None:
            return  # the failure waits for `take`; writing on after it would leave a hole
        events = self._drained()
        if events:
            self._flush = asyncio.create_task(self._write_out(events))

    async def _write_out(self, events: tuple[NewEvent, ...]) -> None:
        await self._write(events)
        if self._pending and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._begin_flush)

    def _drained(self) -> tuple[NewEvent, ...]:
        self._seal_text()
        events, self._pending = tuple(self._pending), []
        return events

    def _seal_text(self) -> None:
        if len(self._texts) > 1:
            last = self._pending[-1]
            data: JsonObject = {**last.data, "text": "".join(self._texts)}
            self._pending[-1] = NewEvent(type=last.type, at=last.at, data=data)
        self._texts = []


def _same_subject(last: NewEvent, event: NewEvent) -> bool:
    if last.type is not event.type:
        return False
    match event.type:
        case RunEventType.MESSAGE_DELTA:
            return last.data["message_id"] == event.data["message_id"]
        case RunEventType.TOOL_PROGRESS:
            return last.data["tool_call_id"] == event.data["tool_call_id"]
        case _:
            return False
