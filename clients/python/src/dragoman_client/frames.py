"""Server-sent events, line by line; and how long to wait between attempts."""

import json
from collections.abc import Iterator
from typing import Any

HEARTBEATS_MISSED_S = 60.0
"""A stream that is silent for so long is broken: the service sends a comment every 15 seconds."""


class Frames:
    """Collects lines to events. A cut event is not delivered: the service sends it again after
    `Last-Event-ID`."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def feed(self, line: str) -> dict[str, Any] | None:
        """The event that this line completes."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        if line or not self._data:
            return None
        data, self._data = "\n".join(self._data), []
        event: dict[str, Any] = json.loads(data)
        return event


def pauses(attempts: int) -> Iterator[float]:
    """Seconds between attempts: 0.25, 0.5, 1, … at most 8."""
    return (min(0.25 * 2**number, 8.0) for number in range(attempts))
