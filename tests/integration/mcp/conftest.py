"""Fixtures of tests with started MCP servers."""

import pytest

from tests.integration.mcp.parts import PATIENCE_S

TRANSPORTS = "infrastructure.mcp.transports"


@pytest.fixture
def patient_with_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service waits about a second for a launcher to say how its server ended; on a busy
    machine a launcher may be held up for longer."""
    monkeypatch.setattr(f"{TRANSPORTS}.stdio.MARGIN_S", PATIENCE_S)
    monkeypatch.setattr(f"{TRANSPORTS}.stdio_process.MARGIN_S", PATIENCE_S)
    monkeypatch.setattr("infrastructure.mcp.connections.connection._EXIT_REASON_S", PATIENCE_S)
