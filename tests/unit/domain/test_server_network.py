"""What a started server may reach."""

import pytest

from domain.errors import ServiceError
from domain.mcp.network import AllowedHost, HostAllowlist, ServerNetwork
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.workflows.config_reader import ConfigReader
from domain.workflows.inline_server import inline_server_json, inline_server_of, read_inline_server

pytestmark = pytest.mark.requirement("S1")


def a_config(network: ServerNetwork, *hosts: str, kind: McpServerKind = McpServerKind.CUSTOM) -> McpServerConfig:
    source = {"url": "https://example.com"} if kind.is_remote else {"command": "server"}
    source = {"package": "example.com/server"} if kind is McpServerKind.OCI else source
    return McpServerConfig(slug="server", kind=kind, network=network, network_hosts=hosts, **source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "host", "port", "is_permitted"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 80, True),
        ("api.example.com", "API.Example.com.", 443, True),
        ("api.example.com", "api.example.com", 8443, False),
        ("api.example.com", "a.api.example.com", 443, False),
        ("api.example.com", "xapi.example.com", 443, False),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("api.example.com:8443", "api.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*.example.com:22", "a.example.com", 22, True),
        ("192.0.2.1", "192.0.2.1", 443, True),
        ("192.0.2.1", "192.0.2.10", 443, False),
    ],
)
def test_an_entry_permits_one_host_or_all_names_below_one(entry: str, host: str, port: int, is_permitted: bool) -> None:
    assert HostAllowlist([entry]).permits(host, port) is is_permitted


def test_ports_of_the_operator_bound_those_of_an_allowlist() -> None:
    hosts = HostAllowlist(["api.example.com", "db.example.com:5432"], ports=(443,))
    assert hosts.permits("api.example.com", 443)
    assert not hosts.permits("api.example.com", 80)
    assert not hosts.permits("db.example.com", 5432)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.",
        "a.*.com",
        "**.example.com",
        ".example.com",
        "example.com.",
        "Example.com",
        "ex ample.com",
        "exämple.com",
        "-a.com",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:4430000000",
        "example.com:²",
        "[::1]:443",
        "a" * 64,
        ".".join(["a" * 60] * 5),
    ],
)
def test_what_is_no_host_is_no_entry(entry: str) -> None:
    with pytest.raises(ValueError, match=r"host name|port"):
        AllowedHost.read(entry)


@pytest.mark.parametrize(
    ("network", "hosts", "kind", "paths"),
    [
        (ServerNetwork.ALLOWLIST, (), McpServerKind.CUSTOM, ["network_hosts"]),
        (ServerNetwork.FULL, ("a.example",), McpServerKind.CUSTOM, ["network_hosts"]),
        (ServerNetwork.NONE, ("a.example",), McpServerKind.CUSTOM, ["network_hosts"]),
        (ServerNetwork.ALLOWLIST, ("a.example", "a b"), McpServerKind.CUSTOM, ["network_hosts.1"]),
        (ServerNetwork.NONE, (), McpServerKind.HTTP, ["network"]),
        (ServerNetwork.ALLOWLIST, ("a.example",), McpServerKind.OCI, ["network_hosts", "network"]),
        (ServerNetwork.ALLOWLIST, ("a.example",), McpServerKind.SSE, ["network", "network_hosts"]),
    ],
)
def test_a_network_fits_its_hosts_and_the_kind_of_server(
    network: ServerNetwork, hosts: tuple[str, ...], kind: McpServerKind, paths: list[str]
) -> None:
    with pytest.raises(ServiceError) as refused:
        a_config(network, *hosts, kind=kind)
    assert [violation.path for violation in refused.value.violations] == paths


def test_a_server_has_the_network_that_all_have_unless_it_says_otherwise() -> None:
    assert McpServerConfig(slug="server", kind=McpServerKind.CUSTOM, command="server").network is ServerNetwork.FULL


def test_a_server_of_a_workflow_has_a_network_too() -> None:
    config = a_config(ServerNetwork.ALLOWLIST, "api.example.com")
    assert inline_server_of(inline_server_json(config)) == config
    reader = ConfigReader({"slug": "s", "kind": "custom", "command": "x", "network": "some", "network_hosts": "all"})
    read_inline_server(reader)
    assert {fault.path for fault in reader.faults} == {"network", "network_hosts"}
