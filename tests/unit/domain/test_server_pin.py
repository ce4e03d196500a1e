"""What an approval says of the server behind a call."""

from dataclasses import replace

import pytest

from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from domain.mcp.server_pin import ServerPin
from tests.builders import a_server
from tests.mcp_builders import INSTALLATION, PACKAGE, a_package_server

CUSTOM = McpServerConfig(slug="shell", kind=McpServerKind.CUSTOM, command="sh", args=("-c", "id; rm x"))
REMOTE = McpServerConfig(slug="remote", kind=McpServerKind.HTTP, url="https://mcp.example.com/mcp")


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("server", "runs"),
    [
        (a_server(config=CUSTOM), "custom sh -c 'id; rm x'"),
        (a_server(config=REMOTE), "http https://mcp.example.com/mcp"),
        (a_package_server(installation=INSTALLATION), "python mcp-server-time 1.2.3 (installed: 1.2.3)"),
        (a_package_server(replace(PACKAGE, version=None, args=("--utc",))), "python mcp-server-time --utc"),
    ],
    ids=["custom", "remote", "installed", "not installed"],
)
def test_it_says_what_is_started_or_connected_to(server: McpServer, runs: str) -> None:
    pin = ServerPin.of(server)
    assert pin.runs == runs
    assert ServerPin.from_json(pin.as_json()) == pin
