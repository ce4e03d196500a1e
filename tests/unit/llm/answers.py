"""Answers of providers without a network: `ProviderHttp` that gives each request what a test has
ready for it."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL


class SomeAnswer:
    """What a provider answers: whole, or in pieces of which each comes when it is read, with
    something happening before. One that `breaks_off` has no end."""

    def __init__(
        self,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        whole: bytes | None = None,
        pieces: Iterable[bytes] = (),
        before_each: Callable[[], None] = lambda: None,
        breaks_off: bool = False,
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.came = 0
        """Of the pieces."""
        self.is_closed = False
        self._whole = whole or b""
        self._pieces = deque(pieces)
        self._before_each = before_each
        self._breaks_off = breaks_off

    @property
    def is_complete(self) -> bool:
        return not self._whole and not self._pieces and not self._breaks_off

    async def read(self) -> bytes:
        if self._whole:
            whole, self._whole = self._whole, b""
            return whole
        if not self._pieces:
            if self._breaks_off:
                raise aiohttp.ClientPayloadError
            return b""
        self._before_each()
        self.came += 1
        return self._pieces.popleft()

    def close(self) -> None:
        self.is_closed = True


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: where it went, with what."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class AnsweringHttp:
    """Answers every request alike, and remembers them."""

    def __init__(self, answer: SomeAnswer) -> None:
        self._answer = answer
        self.requests: list[Sent] = []

    def to(self, url: str | URL, headers: Mapping[str, str]) -> "AnsweringAddress":
        return AnsweringAddress(self, str(url), headers)

    def answer(self, sent: Sent) -> SomeAnswer:
        self.requests.append(sent)
        return self._answer

    async def aclose(self) -> None:
        """Nothing is open."""


class AnsweringAddress:
    """An address of it."""

    def __init__(self, http: AnsweringHttp, url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._url = url
        self._headers = headers

    async def get(self, *, total_s: float) -> SomeAnswer:
        return self._http.answer(Sent(self._url, self._headers, b""))

    async def send(self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None) -> SomeAnswer:
        return self._http.answer(Sent(self._url, self._headers, body))
