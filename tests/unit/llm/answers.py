"""Answers of providers without a network: `ProviderHttp` that gives each request what a test has ready for it."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from infrastructure.http.kept_connection import BrokenError


class SomeAnswer:
    """What a provider answers: whole, or in pieces of which each comes when it is waited for, with something happening
    before. One that `breaks_off` has no end."""

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
        self.size = 0 if whole is None else len(whole)
        self.came = 0
        """Of the pieces."""
        self.is_closed = False
        self._here = whole or b""
        self._pieces = deque(pieces)
        self._before_each = before_each
        self._breaks_off = breaks_off

    @property
    def is_complete(self) -> bool:
        return not self._pieces and not self._breaks_off

    def taken(self) -> bytes:
        here, self._here = self._here, b""
        return here

    async def more(self, wait_s: float | None = None) -> None:
        if not self._pieces:
            raise BrokenError
        self._before_each()
        self.came += 1
        self._here += self._pieces.popleft()

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

    def to(self, url: str, headers: Mapping[str, str]) -> "AnsweringAddress":
        return AnsweringAddress(self, url, headers)

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

    async def send(self, body: bytes, *, wait_s: float, limit: int) -> SomeAnswer:
        return self._http.answer(Sent(self._url, self._headers, body))
