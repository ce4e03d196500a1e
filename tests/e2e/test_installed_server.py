"""A server that is installed, through the command line: before, while and after it is there, runs
go on."""

from pathlib import Path

import pytest

from domain.json_value import JsonObject
from tests.e2e.dragoman_here import DragomanHere
from tests.integration.mcp.install.packages import wheel

pytestmark = pytest.mark.timeout(300)

CALLS_IT: tuple[JsonObject, ...] = (
    {"calls": [{"tool": "mcp__tiny__echo", "arguments": {"text": "hello"}}]},
    {"text": "It said: {{ results.mcp__tiny__echo }}"},
)


@pytest.mark.requirement("B1", "B2", "B14")
def test_runs_go_on_whether_or_not_a_server_is_installed(tmp_path: Path) -> None:
    dragoman = DragomanHere(tmp_path / "home")
    file = wheel(tmp_path)
    dragoman.run("mcp", "add", "tiny", "--kind", "python", "--package", str(file))
    model = dragoman.script("calls", *CALLS_IT)
    run = ("run", "Say hello.", "--server", "tiny", "--model", model)

    assert "A tool with the name mcp__tiny__echo was not found." in dragoman.run(*run).out
    assert dragoman.run("mcp", "show", "tiny", "--json").json["status"].items() >= {"state": "not_installed"}.items()  # type: ignore[union-attr]

    assert "Installed tiny 1.2.3" in dragoman.run("mcp", "install", "tiny").err
    file.unlink()
    dragoman.run("mcp", "approve", "tiny", "--all")
    assert dragoman.run(*run).out == "It said: hello\n"

    dragoman.run("mcp", "uninstall", "tiny")
    assert "A tool with the name mcp__tiny__echo was not found." in dragoman.run(*run).out
    assert list((tmp_path / "home" / "servers").glob("[!.]*/*/*")) == []

    actions = dragoman.run("audit", "list", "--action", "mcp_server.*", "--json").out
    for action in ("mcp_server.created", "mcp_server.installed", "mcp_server.uninstalled"):
        assert action in actions
