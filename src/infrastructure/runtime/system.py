"""The system clock and the source of randomness, as ports of the application."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from domain.identity.api_key import TOKEN_PREFIX

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 in lower case, without i, l, o and u. The order of characters is that of
values: ids sort as numbers."""
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
"""Two characters for each value of 10 bits."""
_SHIFTS = (40, 30, 20, 10, 0)
_OF_BYTE = _ALPHABET.encode() * 8
"""A character for each byte, by its lower five bits: a random byte gives five random bits."""
_RANDOM_CHARACTERS = 16
_TOKEN_BYTES = 32


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

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 characters that sort by time (to the millisecond) and cannot be
        guessed."""
        ms = self._unix_time_ns() // 1_000_000
        moment = "".join([_PAIRS[ms >> shift & 1023] for shift in _SHIFTS])
        return f"{prefix}_{moment}{secrets.token_bytes(_RANDOM_CHARACTERS).translate(_OF_BYTE).decode()}"

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits, safe in URLs and headers."""
        return TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
