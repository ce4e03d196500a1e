"""Decodes server-sent events (WHATWG HTML, 9.2.6) from bytes as they arrive."""

import re

from interfaces.cli.api import ServerEvent

# A final CR may be the first half of a CRLF that is still to come.
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


class EventStreamDecoder:
    """Feed it bytes cut anywhere; it gives back the events that are complete. Comments and unknown fields are dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._type = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events completed by `chunk`."""
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        return [event for line in lines if (event := self._take(line.decode("utf-8", "replace"))) is not None]

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id" if "\0" not in value:
                self._id = value or None
            case "event":
                self._type = value
            case "data":
                self._data.append(value)
            case _:
                pass
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, kind, identifier = self._data, self._type, self._id
        self._data, self._type, self._id = [], "", None
        return ServerEvent(id=identifier, type=kind or "message", data="\n".join(data)) if data else None
