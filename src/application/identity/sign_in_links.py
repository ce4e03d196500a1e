"""Codes of links that sign a person in to the console."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from application.system.lru import LruCache
from application.system.ports import Clock

LASTS = timedelta(minutes=15)
_MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInCode:
    code: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Issued:
    token: str = field(repr=False)
    expires_at: datetime


class SignInLinks:
    """Rules:
    - A code stands for the API key of the person who created it.
    - It works once, for fifteen minutes, and only in the process that created it.
    - Of more codes than fit, the oldest stop working.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._issued: LruCache[str, _Issued] = LruCache(_MOST)

    def create(self, token: str) -> SignInCode:
        """A code for the holder of this API key, who was authenticated before."""
        new = SignInCode(code=secrets.token_urlsafe(24), expires_at=self._clock.now() + LASTS)
        self._issued.put(new.code, _Issued(token=token, expires_at=new.expires_at))
        return new

    def redeem(self, code: str) -> str | None:
        """The API key of the code, which is used up. None for a code that does not work."""
        issued = self._issued.pop(code)
        return None if issued is None or issued.expires_at <= self._clock.now() else issued.token
