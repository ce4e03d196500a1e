"""The machine's clock and its source of randomness, as the application asks for them."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from domain.identity.api_key import TOKEN_PREFIX

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32, in lower case: without i, l, o and u; in the order of its values, so ids sort as numbers do."""

_ID_LENGTH = 26
_RANDOM_BITS = 80
_TOKEN_BYTES = 32
# Ten bits at a time: half the loop of one character at a time.
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)


class SystemClock:
    """Wall time in UTC, and the monotonic clock of this process."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back."""
        return time.monotonic()


class RandomIds:
    """Ids of 48 bits of milliseconds and 80 random bits, in 26 characters; tokens of 256 random bits."""

    def __init__(self, *, unix_time_ns: Callable[[], int] = time.time_ns) -> None:
        self._unix_time_ns = unix_time_ns

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 characters that sort by time (to the millisecond) and cannot be guessed."""
        value = (self._unix_time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        pairs = [_PAIRS[value >> shift & 0x3FF] for shift in range((_ID_LENGTH - 2) * 5, -1, -10)]
        return f"{prefix}_{''.join(pairs)}"

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits, safe in URLs and headers."""
        return TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
