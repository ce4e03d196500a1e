"""Names that a started server looks up. Above: its proxy. Below: the system's resolver, in threads
apart from those in which the service looks names up."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from application.system.lru import LruCache
from application.system.shared_work import SharedWork
from infrastructure.http.shared_bound import OrganizationBound

_AT_A_TIME = 2
_WAIT_S = 5.0
_ANSWER_S, _FAILURE_S = 30.0, 10.0
_MAX_ANSWERS = 256

LOOKUPS_TOGETHER = 16
"""How many lookups of all proxies may be under way in one process."""

Addresses = tuple[tuple[int, str], ...]
"""Families with addresses; empty for a name that has none."""


class LookupsBusyError(OSError):
    """Too many lookups are under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    addresses: Addresses
    until: float


def addresses_of(host: str) -> Addresses:
    """Raises OSError, and UnicodeError for a name with a wrong label."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple((family, str(place[0])) for family, _, _, _, place in found)


class ProxyResolver(AbstractResolver):
    """Rules:
    - At most 2 lookups at a time, and `bound` for those of other servers together with these. A
      lookup counts until it ends, also after its connection has ended.
    - After `wait_s` without a free place, LookupsBusyError.
    - One lookup for a name at a time. Answers are stored for 30 seconds, failures for 10.
    """

    def __init__(
        self, bound: OrganizationBound, *, look_up: Callable[[str], Addresses] = addresses_of, wait_s: float = _WAIT_S
    ) -> None:
        self._bound = bound
        self._look_up = look_up
        self._wait_s = wait_s
        self._free = asyncio.Semaphore(_AT_A_TIME)
        self._answers: LruCache[str, _Answer] = LruCache(_MAX_ANSWERS)
        self._under_way = SharedWork[str, Addresses | None](name="egress-lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of all families. Raises OSError, LookupsBusyError."""
        known = self._answers.get(host)
        if known is not None and known.until > asyncio.get_running_loop().time():
            found: Addresses | None = known.addresses
        else:
            found = await self._under_way.result(host, partial(self._looked_up, host))
        if found is None:
            raise LookupsBusyError("too many lookups are under way")
        if not found:
            raise OSError("the name has no address")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=0)
            for kind, address in found
        ]

    async def close(self) -> None:
        """Lookups end by themselves."""

    async def _looked_up(self, host: str) -> Addresses | None:
        """None if no place was free."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._acquire()
        except TimeoutError:
            return None
        try:
            found = await self._in_thread(host)
        finally:
            self._bound.release()
            self._free.release()
        until = asyncio.get_running_loop().time() + (_ANSWER_S if found else _FAILURE_S)
        self._answers.put(host, _Answer(addresses=found, until=until))
        return found

    async def _acquire(self) -> None:
        await self._free.acquire()
        try:
            await self._bound.acquire()
        except BaseException:
            self._free.release()
            raise

    def _in_thread(self, host: str) -> asyncio.Future[Addresses]:
        """In a thread by itself: the process ends without waiting for it."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Addresses] = loop.create_future()

        def finish(addresses: Addresses) -> None:
            if not found.done():
                found.set_result(addresses)

        def work() -> None:
            addresses: Addresses = ()
            try:
                addresses = self._look_up(host)
            except (OSError, UnicodeError):
                return
            finally:
                with suppress(RuntimeError):  # the event loop has ended
                    loop.call_soon_threadsafe(finish, addresses)

        threading.Thread(target=work, name="egress-lookup", daemon=True).start()
        return found
