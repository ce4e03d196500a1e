"""The system clock and the source of randomness, as ports of the application."""

import secrets
import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime

from domain.identity.api_key import TOKEN_PREFIX

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 in lower case, without i, l, o and u. The order of characters is that of
values, so ids sort as numbers."""

_TOKEN_BYTES = 32
_RANDOM = struct.Struct("8H")
"""Ten of each 16 bits are used."""
_IDS_AT_ONCE = 64
"""Requesting randomness from the kernel costs more than the rest of an id."""
# Ten bits at a time: half the work of single characters. Repeated for each value of the six unused
# bits.
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET) * 64


class SystemClock:
    """Wall time in UTC, and the monotonic clock of this process."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class RandomIds:
    """Ids of 48 bits of milliseconds and 80 random bits, in 26 characters; tokens of 256 random
    bits."""

    def __init__(self, *, unix_time_ns: Callable[[], int] = time.time_ns) -> None:
        self._unix_time_ns = unix_time_ns
        self._begin = (-1, "")
        self._random = _RANDOM.iter_unpack(b"")

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 characters that sort by time (to the millisecond) and cannot be
        guessed."""
        ms = self._unix_time_ns() // 1_000_000
        of_ms, begin = self._begin
        if of_ms != ms:
            begin = "".join([_PAIRS[ms >> shift & 0x3FF] for shift in (40, 30, 20, 10, 0)])
            self._begin = ms, begin
        p, (a, b, c, d, e, f, g, h) = _PAIRS, next(self._random, None) or self._more()
        return f"{prefix}_{begin}{p[a]}{p[b]}{p[c]}{p[d]}{p[e]}{p[f]}{p[g]}{p[h]}"

    def _more(self) -> tuple[int, ...]:
        """Random numbers for one id, and an iterator for the following ids. Two threads never get
        the same numbers."""
        random = self._random = _RANDOM.iter_unpack(secrets.token_bytes(_RANDOM.size * _IDS_AT_ONCE))
        return next(random)

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits, safe in URLs and headers."""
        return TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
