"""Six real servers in one run, and again after a restart where there is no network."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.completeness import beyond
from tests.e2e.estate import CALLS, Outcome, estate, install, registrations, use
from tests.e2e.service import ROOT, environment
from tests.integration.mcp.install.uv import path_with_uv
from tests.integration.mcp.parts import EVERYTHING, free_port

pytestmark = pytest.mark.timeout(600)

ON_LOOPBACK_ONLY = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def namespaces() -> bool:
    """Whether a process may be put where there is no network."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*ON_LOOPBACK_ONLY, "true"], capture_output=True, check=False).returncode == 0


def assert_all_work(outcome: Outcome) -> None:
    older = dict.fromkeys(("everything", "memory", "http", "sse"), "2025-11-25")
    assert outcome.tested.items() >= {**older, "time": "2026-07-28"}.items()
    assert outcome.tested["sqlite"] < "2026"
    assert outcome.status == "completed"
    for slug, (_, _, result) in CALLS.items():
        assert result in outcome.called[slug], outcome.called


@pytest.mark.requirement("B1", "B2", "B3", "B4")
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: `make node`")
@pytest.mark.skipif(not Path(EVERYTHING).exists(), reason="needs `make node`")
def test_six_real_servers_are_installed_tested_and_called_in_one_run_and_again_without_network(tmp_path: Path) -> None:
    home, ports = tmp_path / "home", (free_port(), free_port())
    with estate(home, *ports, PATH=path_with_uv(tmp_path)) as service:
        for slug, status in install(service, registrations(tmp_path, *ports)).items():
            if "cannot be reached" in json.dumps(status):
                pytest.skip(beyond("no package registry can be reached"))
            assert status["installed_version"], (slug, status)
        assert_all_work(use(service))
    if not namespaces():
        pytest.skip(beyond("network namespaces are not permitted"))
    again = subprocess.run(
        [*ON_LOOPBACK_ONLY, sys.executable, "-m", "tests.e2e.estate", *map(str, ports)],
        env=environment(home, PYTHONPATH=":".join(filter(None, sys.path))),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    outcome = Outcome(**json.loads(again.stdout))
    assert outcome.elsewhere == "ENETUNREACH"
    assert_all_work(outcome)
