"""Events of runs as frames of a stream (server-sent events)."""

from collections.abc import Iterable

import msgspec

from application.system.lru import LruCache
from domain.ids import RunId
from domain.runs.events import RunEvent
from interfaces.http.runs.views import event_json

_MAX_KEPT_BYTES = 16 * 1024


def event_frame(event: RunEvent) -> bytes:
    """An event with its seq as id; the data repeats seq and type, and adds run, time and the
    type's fields."""
    data = msgspec.json.encode(event_json(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.value.encode(), data)


class EventFrames:
    """Encoded events of runs. Each event is encoded once for all followers; the newest are
    cached."""

    def __init__(self, *, kept: int = 512) -> None:
        self._frames: LruCache[tuple[RunId, int], bytes] = LruCache(kept)

    @property
    def kept(self) -> int:
        """Number of cached frames."""
        return len(self._frames)

    def of(self, events: Iterable[RunEvent]) -> bytes:
        """The frames of the events, concatenated."""
        return b"".join(map(self._frame, events))

    def _frame(self, event: RunEvent) -> bytes:
        # Stored events never change, so a run and a number identify one frame.
        key = (event.run_id, event.seq)
        frame = self._frames.get(key)
        if frame is None:
            frame = event_frame(event)
            if len(frame) <= _MAX_KEPT_BYTES:
                self._frames.put(key, frame)
        return frame
