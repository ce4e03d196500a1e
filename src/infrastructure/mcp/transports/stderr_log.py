"""What is kept of a started server's stderr: of the server over all its processes, and of each
process."""

DEFAULT_STDERR_BYTES = 64 * 1024
_OWN_LOG_BYTES = 8 * 1024
_LONGEST_LINE = 32 * 1024
_REMARK = b"[dragoman] "
_LEFT_OUT = _REMARK + b"a line of more than 32 KiB is left out"


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
        self.append(start + _REMARK + line.encode(errors="replace") + b"\n")

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
    """The log of one process, which passes on whole lines to that of the server: of parts of lines,
    or of lines that are mixed up with those of other processes, secrets would not be known. A line
    of more than 32 KiB is left out there."""

    def __init__(self, also: StderrLog) -> None:
        super().__init__(_OWN_LOG_BYTES)
        self._also = also
        self._begun = bytearray()
        self._is_too_long = False

    def append(self, data: bytes) -> None:
        super().append(data)
        *ended, begun = data.split(b"\n")
        if ended:
            self._begin(ended[0])
            ended[0] = _LEFT_OUT if self._is_too_long else bytes(self._begun)
            self._also.append(b"\n".join([_LEFT_OUT if len(line) > _LONGEST_LINE else line for line in ended]) + b"\n")
            self._begun.clear()
            self._is_too_long = False
        self._begin(begun)

    def finish(self) -> None:
        """Pass on the last line, which has no end."""
        if self._begun or self._is_too_long:
            self.append(b"\n")

    def _begin(self, part: bytes) -> None:
        if self._is_too_long or len(self._begun) + len(part) > _LONGEST_LINE:
            self._is_too_long = True
            self._begun.clear()
        else:
            self._begun += part
