"""Combines the frequent events of a run (deltas, progress), so that a burst costs one write."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import cast

from domain.json_value import JsonObject
from domain.runs.events import NewEvent, RunEventType

COALESCING_S = 0.05


class EventBuffer:
    """Events are written in order, at most `interval_s` after they came.

    - During a write the next batch grows, so the store sets the pace.
    - Consecutive deltas of one message, or of its reasoning, become one event. Of a call's progress
      only the newest event stays, at the position of the oldest.
    """

    def __init__(
        self, write: Callable[[tuple[NewEvent, ...]], Awaitable[None]], *, interval_s: float = COALESCING_S
    ) -> None:
        self._write = write
        self._interval_s = interval_s
        self._pending: list[NewEvent] = []
        self._texts: list[str] = []
        self._progress: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._flush: asyncio.Task[None] | None = None
        self._is_paused = False
        self._pause = _Pause(self)
        self._closed = False

    def add(self, event: NewEvent) -> None:
        """Add an event; it is written soon, or returned by the next `take`. A closed buffer ignores
        it."""
        if self._closed:
            return
        match event.type:
            case RunEventType.MESSAGE_DELTA | RunEventType.REASONING_DELTA:
                self._add_delta(event)
            case RunEventType.TOOL_PROGRESS:
                self._add_progress(event)
            case _:
                self._append(event)
        self._arm()

    async def take(self) -> tuple[NewEvent, ...]:
        """Events that are not written yet, to be written by the caller; waits for a running write.
        Raises its error once; its events are lost then.
        """
        self._disarm()
        while self._flush is not None:
            flush = self._flush
            try:
                await asyncio.shield(flush)
            finally:
                if flush.done() and self._flush is flush:
                    self._flush = None
            self._disarm()
        return self._drained()

    def paused(self) -> "_Pause":
        """Context without writes, while the caller writes taken events. Later events are written
        after it."""
        return self._pause

    def pause(self) -> None:
        self._is_paused = True
        self._disarm()

    def resume(self) -> None:
        self._is_paused = False
        if self._pending:
            self._arm()

    def close(self) -> None:
        """Discard unwritten events and ignore new ones. A running write completes. The buffer lets
        go of the session that writes: a cycle would keep its transcript until a garbage
        collection."""
        self._closed = True
        self._write = _nothing
        self._disarm()
        self._drained()
        if self._flush is not None:
            self._flush.add_done_callback(_look_at_outcome)

    def _add_delta(self, event: NewEvent) -> None:
        text = cast(str, event.data["text"])
        if self._texts and _are_of_one_text(self._pending[-1], event):
            self._texts.append(text)
        else:
            self._append(event)
            self._texts = [text]

    def _add_progress(self, event: NewEvent) -> None:
        call_id = cast(str, event.data["tool_call_id"])
        place = self._progress.get(call_id)
        if place is not None:
            self._pending[place] = event
        else:
            self._progress[call_id] = len(self._pending)
            self._append(event)

    def _append(self, event: NewEvent) -> None:
        self._seal_text()
        self._pending.append(event)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and not self._is_paused and (self._flush is None or self._flush.done()):
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._begin_flush)

    def _begin_flush(self) -> None:
        self._timer = None
        if self._flush is not None and self._flush.done() and self._flush.exception() is not None:
            return  # `take` raises the failure; writing on would leave a gap
        events = self._drained()
        if events:
            self._flush = asyncio.create_task(self._write_out(events))

    async def _write_out(self, events: tuple[NewEvent, ...]) -> None:
        await self._write(events)
        if self._pending and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._begin_flush)

    def _drained(self) -> tuple[NewEvent, ...]:
        if not self._pending:
            return ()
        self._seal_text()
        events, self._pending = tuple(self._pending), []
        self._progress.clear()
        return events

    def _seal_text(self) -> None:
        if len(self._texts) > 1:
            last = self._pending[-1]
            data: JsonObject = {**last.data, "text": "".join(self._texts)}
            self._pending[-1] = NewEvent(type=last.type, at=last.at, data=data)
        self._texts = []


async def _nothing(_events: tuple[NewEvent, ...]) -> None:
    """What a closed buffer writes."""


class _Pause:
    """The buffer's pause, entered any number of times in sequence."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer

    def __enter__(self) -> None:
        self._buffer.pause()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._buffer.resume()


def _are_of_one_text(last: NewEvent, event: NewEvent) -> bool:
    return last.type is event.type and last.data["message_id"] == event.data["message_id"]


def _look_at_outcome(flush: asyncio.Task[None]) -> None:
    """Retrieve the error, so that asyncio does not report it: nothing calls `take` any more."""
    if not flush.cancelled():
        flush.exception()
