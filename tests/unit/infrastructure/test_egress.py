"""The egress guard: what may be reached, in every spelling of an address."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from infrastructure.egress import EgressBlockedError, EgressPolicy
from infrastructure.egress_resolver import GuardedResolver

pytestmark = pytest.mark.requirement("B16")


class FixedResolver(AbstractResolver):
    """Answers with these addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://0/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[::ffff:0:127.0.0.1]/",
        "http://[64:ff9b:1::a9fe:a9fe]/",
        "http://[fec0::1]/",
        "http://[fe80::1%25eth0]/",
        "http://10.0.0.1:8080/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://224.0.0.1/",
        "http://exam\tple.com/",
        "https://example.com/\n",
        "\x00https://example.com/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "http:///nohost",
        "http://user:word@example.com/",
        "http://example.com:99999/",
    ],
)
def test_addresses_and_schemes_that_are_not_public_are_blocked(url: str) -> None:
    with pytest.raises(EgressBlockedError):
        EgressPolicy().check(url)


@pytest.mark.parametrize(
    "url", ["https://example.com/a?b", "http://93.184.216.34/", "http://[2606:2800:220:1::1]/", "http://name:8080/"]
)
def test_public_addresses_and_names_pass_the_look_at_the_url(url: str) -> None:
    EgressPolicy().check(url)


def test_what_the_operator_allows_is_reached_and_nothing_beside_it() -> None:
    policy = EgressPolicy(["10.1.0.0/16", "127.0.0.1", "mcp.internal"])
    policy.check("http://10.1.2.3/")
    policy.check("http://127.0.0.1:9000/mcp")
    policy.check("http://[::ffff:10.1.2.3]/")
    with pytest.raises(EgressBlockedError):
        policy.check("http://10.2.0.1/")
    with pytest.raises(EgressBlockedError):
        policy.check("http://127.0.0.2/")


@pytest.mark.parametrize("entry", ["", "10.0.0.0/40", "http://x", "a b", "-" * 70])
def test_an_entry_that_is_no_network_address_or_name_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="neither a network"):
        EgressPolicy([entry])


async def test_names_are_held_to_the_addresses_they_resolve_to() -> None:
    resolver = GuardedResolver(EgressPolicy(), FixedResolver("192.168.1.1"))
    with pytest.raises(EgressBlockedError) as caught:
        await resolver.resolve("rebound.example", 80)
    assert caught.value.reason == "The address of rebound.example is not public, so it is not requested."
    assert "It is 192.168.1.1; an operator can allow it with DRAGOMAN_EGRESS_ALLOW." in caught.value.advice


async def test_of_several_addresses_only_the_permitted_ones_are_handed_on() -> None:
    resolver = GuardedResolver(EgressPolicy(), FixedResolver("10.0.0.1", "93.184.216.34"))
    found = await resolver.resolve("mixed.example", 443)
    assert [result["host"] for result in found] == ["93.184.216.34"]


async def test_an_allowed_name_may_resolve_to_a_private_address() -> None:
    resolver = GuardedResolver(EgressPolicy(["mcp.internal"]), FixedResolver("10.0.0.7"))
    assert [result["host"] for result in await resolver.resolve("MCP.internal", 80)] == ["10.0.0.7"]


async def test_a_name_without_addresses_stays_without() -> None:
    inner = FixedResolver()
    resolver = GuardedResolver(EgressPolicy(), inner)
    assert await resolver.resolve("nowhere.example", 80) == []
    await resolver.close()
    assert inner.closed
