"""Which targets are reached through the operator's proxies."""

import pytest

from infrastructure.http.proxies import DIRECT, Proxies

PROXY = "http://proxy.internal:3128"
OTHER = "http://other.internal:8080"


def test_each_scheme_has_its_proxy() -> None:
    proxies = Proxies(http=OTHER, https=PROXY)
    assert proxies.of("http", "example.com") == OTHER
    assert proxies.of("https", "example.com") == PROXY
    assert Proxies(https=PROXY).of("http", "example.com") is None
    assert DIRECT.of("https", "example.com") is None
    assert [DIRECT.is_configured, Proxies(http=OTHER).is_configured] == [False, True]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_is_reached_directly(host: str) -> None:
    assert Proxies(http=PROXY).of("http", host, 80) is None


@pytest.mark.parametrize(
    ("entry", "direct", "proxied"),
    [
        ("*", ["example.com", "10.0.0.1", "2001:db8::1"], []),
        ("example.com", ["example.com", "Example.COM.", "a.example.com"], ["notexample.com", "example.com.org"]),
        (".example.com", ["example.com", "a.example.com"], ["notexample.com"]),
        ("*.example.com", ["a.example.com"], ["notexample.com"]),
        ("10.0.0.0/8", ["10.1.2.3"], ["11.0.0.1", "ten.example.com"]),
        ("10.1.2.3", ["10.1.2.3"], ["10.1.2.4"]),
        ("2001:db8::/32", ["2001:db8::7"], ["2001:db9::7"]),
        ("[2001:db8::7]", ["2001:db8::7"], ["2001:db8::8"]),
    ],
)
def test_exceptions_are_names_addresses_and_networks(entry: str, direct: list[str], proxied: list[str]) -> None:
    proxies = Proxies(http=PROXY, bypass=["else.where", entry])
    assert [host for host in direct if proxies.of("http", host) is not None] == []
    assert [host for host in proxied if proxies.of("http", host) != PROXY] == []


@pytest.mark.parametrize("host", ["example.com", "10.1.2.3", "2001:db8::7"])
def test_an_exception_may_be_for_one_port(host: str) -> None:
    named = f"[{host}]" if ":" in host else host
    proxies = Proxies(http=PROXY, https=PROXY, bypass=[f"{named}:443", f"{named}:8080"])
    assert proxies.of("https", host) is None
    assert proxies.of("http", host, 8080) is None
    assert proxies.of("http", host) == PROXY
