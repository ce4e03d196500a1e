"""The egress guard: what may be reached, in every spelling of an address."""

import socket
from ipaddress import ip_network

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver

pytestmark = pytest.mark.requirement("B16", "S4")


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
        "http://127\u30020\u30020\u30021/",
        "http://127\uff0e0\uff0e0\uff0e1:8080/",
        "http://127\uff611/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://\U0001d7d9\U0001d7da\U0001d7df.0.0.1/",
        "http://0x7f\u30021/",
        "http://0\uff58\uff17f000001/",
        "http://%31%32%37.0.0.1/",
        "http://127.0.0.1%00/",
        "http://127%2e0%2e0%2e1/",
        "http://exa\ufffemple.com/",
        "http://[::ffff:169.254.169.254]/",
        "http://[2606:4700::5efe:10.0.0.1]/",
        "http://[2606:4700::200:5efe:7f00:1]/",
        "http://168.63.129.16/",
        "http://[::ffff:168.63.129.16]/",
        "http://192.0.0.9/",
        "http://192.88.99.1/",
        "http://[3fff::1]/",
        "http://[5f00::1]/",
        "http://[100:0:0:1::1]/",
    ],
)
def test_addresses_and_schemes_that_are_not_public_are_blocked(url: str) -> None:
    with pytest.raises(EgressBlockedError):
        EgressPolicy().check(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a?b",
        "http://93.184.216.34/",
        "http://93\u3002184\u3002216\u300234/",
        "http://[2606:2800:220:1::1]/",
        "http://[2606:4700::5efe:93.184.216.34]/",
        "http://name:8080/",
        "https://m\u00fcnchen.example/",
        "https://\u65e5\u672c\u8a9e\u3002example/",
    ],
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


def target(address: str) -> tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]:
    return socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80)


async def test_no_socket_is_opened_to_a_private_address_whatever_was_looked_at_before() -> None:
    resolver = GuardedResolver(EgressPolicy(), FixedResolver("10.0.0.7"))
    with pytest.raises(EgressBlockedError):
        resolver.open_socket(target("127.0.0.1"))
    with pytest.raises(EgressBlockedError):
        resolver.open_socket(target("::1"))
    resolver.open_socket(target("93.184.216.34")).close()


async def test_a_socket_is_opened_to_a_private_address_that_an_allowed_name_resolved_to() -> None:
    resolver = GuardedResolver(EgressPolicy(["mcp.internal"]), FixedResolver("10.0.0.7"))
    with pytest.raises(EgressBlockedError):
        resolver.open_socket(target("10.0.0.7"))
    await resolver.resolve("mcp.internal", 80)
    resolver.open_socket(target("10.0.0.7")).close()


async def test_a_name_without_addresses_stays_without() -> None:
    inner = FixedResolver()
    resolver = GuardedResolver(EgressPolicy(), inner)
    assert await resolver.resolve("nowhere.example", 80) == []
    await resolver.close()
    assert inner.closed


NOT_GLOBALLY_REACHABLE = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/29 192.0.0.8/32 192.0.0.170/31 192.0.2.0/24
192.88.99.2/32 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32
::/128 ::1/128 ::ffff:0:0/105 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001:2::/48 2001:db8::/32 3fff::/20 5f00::/16 fc00::/7 fe80::/10
"""
"""IANA's registries of special-purpose addresses for IPv4 and IPv6, those that are not globally
reachable. Of IPv4 in IPv6 those of 0.0.0.0/9."""


@pytest.mark.parametrize("network", NOT_GLOBALLY_REACHABLE.split())
def test_no_special_purpose_address_is_requested(network: str) -> None:
    addresses = ip_network(network)
    for address in {addresses[0], addresses[-1], addresses[addresses.num_addresses // 2]}:
        assert not EgressPolicy().permits("example.com", address)
