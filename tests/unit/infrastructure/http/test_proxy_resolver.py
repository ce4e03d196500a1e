"""Lookups of started servers: names that do not answer hold up their own server only."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from infrastructure.http.proxy_resolver import Addresses, LookupsBusyError, ProxyResolver
from infrastructure.http.shared_bound import OrganizationBound, SharedBound

pytestmark = [pytest.mark.timeout(60), pytest.mark.requirement("S1")]


class Names:
    """Names that begin with `slow` do not answer before `release`."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.release = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str) -> Addresses:
        self.asked.append(host)
        if host.startswith("slow"):
            self.begun.release()
            self.release.wait()
        if host == "missing.example":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        if host == "a..example":
            host.encode("idna")
        return ((socket.AF_INET, "192.0.2.1"),)


@pytest.fixture
def names() -> Iterator[Names]:
    names = Names()
    yield names
    names.release.set()


def a_resolver(names: Names, bound: OrganizationBound, *, wait_s: float = 60.0) -> ProxyResolver:
    return ProxyResolver(bound, look_up=names.look_up, wait_s=wait_s)


async def address(resolver: ProxyResolver, host: str) -> str:
    return (await resolver.resolve(host))[0]["host"]


async def hanging(names: Names, resolver: ProxyResolver, count: int) -> list["asyncio.Task[str]"]:
    tasks = [asyncio.create_task(address(resolver, f"slow{number}.example")) for number in range(count)]
    for _ in tasks:
        await asyncio.to_thread(names.begun.acquire)
    return tasks


async def test_names_that_do_not_answer_hold_up_neither_another_server_nor_the_service(names: Names) -> None:
    bound = SharedBound(8).of("org_1")
    hostile, other = a_resolver(names, bound, wait_s=0.05), a_resolver(names, bound)
    slow = await hanging(names, hostile, 2)
    with pytest.raises(LookupsBusyError):
        await hostile.resolve("third.example")
    assert await address(other, "third.example") == "192.0.2.1"
    found = await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    assert found
    names.release.set()
    await asyncio.gather(*slow)
    assert sorted(names.asked) == ["slow0.example", "slow1.example", "third.example"]


async def test_a_lookup_counts_until_it_ends_although_its_client_has_left(names: Names) -> None:
    resolver = a_resolver(names, SharedBound(8).of("org_1"), wait_s=0.05)
    clients = await hanging(names, resolver, 2)
    for client in clients:
        client.cancel()
    await asyncio.wait(clients)
    assert all(client.cancelled() for client in clients)
    with pytest.raises(LookupsBusyError):
        await resolver.resolve("third.example")


async def test_servers_of_one_organization_leave_half_of_all_lookups_to_others(names: Names) -> None:
    bound = SharedBound(2)
    first, second, other = [a_resolver(names, bound.of(each), wait_s=0.05) for each in ("org_1", "org_1", "org_2")]
    slow = await hanging(names, first, 1)
    with pytest.raises(LookupsBusyError):
        await second.resolve("name.example")
    assert await address(other, "name.example") == "192.0.2.1"
    names.release.set()
    await asyncio.gather(*slow)


async def test_a_name_is_looked_up_once_for_all_that_ask_and_its_answer_is_stored(names: Names) -> None:
    resolver = a_resolver(names, SharedBound(8).of("org_1"))
    assert len(await asyncio.gather(*(address(resolver, "name.example") for _ in range(20)))) == 20
    assert await address(resolver, "name.example") == "192.0.2.1"
    assert names.asked == ["name.example"]


@pytest.mark.parametrize("host", ["missing.example", "a..example"])
async def test_a_failure_is_stored_too(names: Names, host: str) -> None:
    resolver = a_resolver(names, SharedBound(8).of("org_1"))
    for _ in range(2):
        with pytest.raises(OSError, match="no address"):
            await resolver.resolve(host)
    assert names.asked == [host]
