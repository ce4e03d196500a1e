"""The system clock and the source of randomness, as ports of the application."""

import secrets
import time
from base64 import b32encode
from collections.abc import Callable
from datetime import UTC, datetime

from domain.identity.api_key import TOKEN_PREFIX

_SPELLED = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghjkmnpqrstvwxyz")
"""From the digits of RFC 4648 to Crockford's base 32 in lower case, without i, l, o and u. The order
of characters is that of values, so ids sort as numbers."""
_CHARACTERS = 26
_RANDOM_BYTES = 10
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
        value = ms.to_bytes(10) + secrets.token_bytes(_RANDOM_BYTES)
        return f"{prefix}_{b32encode(value)[-_CHARACTERS:].translate(_SPELLED).decode()}"

    def new_token(self) -> str:
        """An API token: the public prefix and 256 random bits, safe in URLs and headers."""
        return TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
