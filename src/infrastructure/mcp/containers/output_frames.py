"""Splits the stream of an attached container into its outputs. No I/O."""

import struct
from collections.abc import Callable

_HEADER = struct.Struct(">BxxxL")
_STDOUT, _STDERR = 1, 2


class OutputFrames:
    """The engine's framing: a byte for the output, three of zero, the length in four bytes, then
    the data. Data is passed on as it arrives: nothing is buffered but an incomplete header. Frames
    of other outputs are dropped."""

    def __init__(self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None]) -> None:
        self._takers = {_STDOUT: on_output, _STDERR: on_log}
        self._take: Callable[[bytes], None] | None = None
        self._left = 0
        self._header = b""

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if not self._left:
                wanted = _HEADER.size - len(self._header)
                self._header += data[at : at + wanted]
                at += wanted
                if len(self._header) < _HEADER.size:
                    return
                kind, self._left = _HEADER.unpack(self._header)
                self._take, self._header = self._takers.get(kind), b""
                continue
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            if self._take is not None:
                self._take(part)
