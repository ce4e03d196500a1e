"""Logs of the stderr of started servers: one per server, and one per process."""

from collections.abc import Iterator

DEFAULT_STDERR_BYTES = 64 * 1024
_OWN_LOG_BYTES = 8 * 1024
_LONGEST_LINE = 32 * 1024
_LEFT_OUT = b"[dragoman] a line of more than 32 KiB is left out"


class StderrLog:
    """The last bytes of a server's stderr, and Dragoman's remarks. Outlives the connection."""

    def __init__(self, max_bytes: int = DEFAULT_STDERR_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = bytearray()
        self._is_cut = False

    def append(self, data: bytes) -> None:
        """Append; the oldest bytes are dropped."""
        self._is_cut = self._is_cut or len(data) > self._max_bytes
        self._bytes += data[-self._max_bytes :]
        if len(self._bytes) > 2 * self._max_bytes:
            self._is_cut = True
            del self._bytes[: -self._max_bytes]

    def note(self, line: str) -> None:
        """Append a marked remark of Dragoman."""
        start = b"" if not self._bytes or self._bytes.endswith(b"\n") else b"\n"
        self.append(start + _remark(line))

    def text(self) -> str:
        """The stored text, with invalid UTF-8 replaced, from the beginning of a line: a part of a
        secret is not known as one."""
        kept = self._bytes[-self._max_bytes :]
        if self._is_cut or len(kept) < len(self._bytes):
            kept = kept.partition(b"\n")[2]
        return kept.decode(errors="replace")

    def tail(self, lines: int) -> str:
        return "\n".join(self.text().splitlines()[-lines:])


class CopyingLog(StderrLog):
    """Log of one process. It copies whole lines to the log of the server: a secret in a part of a
    line, or in mixed lines, is not known as one.

    - A line of more than 32 KiB is left out there, with a remark.
    - A remark comes after the line that is in progress.
    """

    def __init__(self, also: StderrLog) -> None:
        super().__init__(_OWN_LOG_BYTES)
        self._also = also
        self._begun = bytearray()
        self._is_too_long = False
        self._remarks = b""

    def append(self, data: bytes) -> None:
        first = data.find(b"\n")
        if first < 0:
            super().append(data)
            self._begin(data)
            return
        if self._remarks:
            data, self._remarks = data[: first + 1] + self._remarks + data[first + 1 :], b""
        super().append(data)
        self._begin(data[:first])
        last = data.rfind(b"\n")
        lines = [_LEFT_OUT if self._is_too_long else bytes(self._begun), *_short_lines(data, first + 1, last)]
        self._also.append(b"\n".join(lines) + b"\n")
        self._begun.clear()
        self._is_too_long = False
        self._begin(data[last + 1 :])

    def note(self, line: str) -> None:
        if self._is_amid_line:
            self._remarks += _remark(line)
        else:
            self.append(_remark(line))

    def finish(self) -> None:
        """Pass on the last line, which has no end."""
        if self._is_amid_line:
            self.append(b"\n")

    @property
    def _is_amid_line(self) -> bool:
        return self._is_too_long or bool(self._begun)

    def _begin(self, part: bytes) -> None:
        if self._is_too_long or len(self._begun) + len(part) > _LONGEST_LINE:
            self._is_too_long = True
            self._begun.clear()
        else:
            self._begun += part


def _remark(line: str) -> bytes:
    return f"[dragoman] {line}\n".encode(errors="replace")


def _short_lines(data: bytes, start: int, last: int) -> Iterator[bytes]:
    """The lines from `start` to the end of line at `last`, many in one, with a remark for each that
    is too long. They are not split: a server writes as many as it likes."""
    while last - start > _LONGEST_LINE:
        end = data.rfind(b"\n", start, start + _LONGEST_LINE + 1)
        if end < 0:
            end = data.find(b"\n", start)
            yield _LEFT_OUT
        else:
            yield data[start:end]
        start = end + 1
    if start <= last:
        yield data[start:last]
