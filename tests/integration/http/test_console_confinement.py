"""How started servers are confined, on a server's page."""

import pytest

from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("S1")


async def test_the_page_of_a_started_server_says_how_servers_are_confined_here(service: Service) -> None:
    admin = await signed_in(service)
    for server in (
        {"slug": "started", "kind": "custom", "command": "a-server"},
        {"slug": "remote", "kind": "http", "url": "https://mcp.example.com/mcp"},
    ):
        await service.call("POST", "/v1/mcp-servers", json=server)
    started = await browse(service, "GET", "/console/servers/started", headers=admin)
    assert "Confinement here" in started.text
    assert "confined" in started.text or "seccomp" in started.text
    remote = await browse(service, "GET", "/console/servers/remote", headers=admin)
    assert "Confinement here" not in remote.text
