"""Servers that are only tested, saved or not: their processes are under the same limits as those
that are called."""

from pathlib import Path

import pytest

from tests.e2e.processes import carrying, until
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, serving


@pytest.mark.requirement("B3", "B10")
@pytest.mark.parametrize("saved", [False, True])
def test_a_tested_server_runs_under_the_limits_of_processes_and_is_gone_after_the_test(
    tmp_path: Path, saved: bool
) -> None:
    told = tmp_path / "limits"
    script = 'cat /proc/self/limits > "$0"; exec "$@"'
    watched = (*ISOLATED_PYTHON, str(SERVERS / "watched_server.py"), str(tmp_path / "log"))
    body: Json = {"kind": "custom", "command": "sh", "args": ["-c", script, str(told), *watched]}
    with serving(tmp_path / "home", DRAGOMAN_MCP_PROCESS_LIMITS="nofile=77,core=0,cpu=1234") as service:
        if saved:
            service.call("POST", "/mcp-servers", {**body, "slug": "limited"})
        outcome = service.call(
            "POST", "/mcp-servers/limited/test" if saved else "/mcp-servers/test", None if saved else body
        )
        assert outcome["ok"], outcome
        limits = {line[:25].strip(): line[26:].split()[:2] for line in told.read_text().splitlines()[1:]}
        assert limits["Max open files"] == ["77", "77"]
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max cpu time"] == ["1234", "1234"]
        until(lambda: not carrying(str(tmp_path / "log")), what="the end of the tested server")
