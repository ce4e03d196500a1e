"""What a service loads beside its start, when it is ready already."""

import subprocess
import sys
from pathlib import Path

from tests.e2e.service import DRAGOMAN, ISOLATED_PYTHON, ROOT, environment

_START = """
import asyncio, sys
from infrastructure.container import Container
from infrastructure.lifecycle import running
from infrastructure.settings import load_settings

async def start() -> None:
    async with running(Container(settings=load_settings()), worker=False):
        [warming] = [task for task in asyncio.all_tasks() if task.get_name() == "warm-up"]
        await warming

asyncio.run(start())
print("mcp" in sys.modules)
"""


def run(home: Path, *command: str) -> str:
    done = subprocess.run(
        command, env=environment(home), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_mcp_sdk_is_loaded_if_there_are_servers_and_takes_no_memory_if_there_are_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    start = (sys.executable, "-c", _START)
    assert run(home, *start) == "False"
    run(home, *DRAGOMAN, "mcp", "add", "idle", "--", *ISOLATED_PYTHON, "-c", "input()")
    assert run(home, *start) == "True"
