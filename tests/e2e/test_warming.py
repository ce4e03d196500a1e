"""What a service loads at its start, and what beside it, when it is ready already."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.service import DRAGOMAN, ISOLATED_PYTHON, ROOT, environment

_START = """
import asyncio, sys
from infrastructure.container import Container
from infrastructure.lifecycle import open_service
from infrastructure.settings import load_settings

async def start() -> None:
    async with open_service(Container(settings=load_settings())):
        [warming] = [task for task in asyncio.all_tasks() if task.get_name() == "warm-up"]
        await warming

asyncio.run(start())
print("mcp" in sys.modules)
"""


_WHOLE_START = """
import asyncio, sys
from interfaces.cli.loading import loading
with loading():
    from interfaces.cli.checked_settings import checked_settings
    from interfaces.asgi import create_app
    from interfaces.service import running
    from infrastructure.container import Container

async def start() -> None:
    container = Container(settings=checked_settings())
    async with running(container):
        create_app(container)
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "warm-up"))

asyncio.run(start())
print(*sys.modules)
"""
_LATER = {
    "aiohttp", "alembic", "botocore", "cryptography", "ddgs", "dotenv", "genai_prices", "google.genai", "greenlet", "httpx", "httpx2", "interfaces.console.app", "interfaces.http.protocols", "jinja2", "jsonschema_rs", "langfuse", "lxml", "mako", "mcp", "opentelemetry.sdk", "procrastinate",
    "psycopg", "pydantic_ai", "pydantic_monty", "pydantic_settings", "pygments", "rich", "sqlalchemy.dialects.postgresql", "trafilatura", "werkzeug",
}  # fmt: skip
"""What is heavy, and not used by a service to which nothing was added yet."""


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


@pytest.mark.requirement("H4")
def test_a_start_loads_nothing_heavy_that_an_idle_service_does_not_use(tmp_path: Path) -> None:
    first = set(run(tmp_path / "home", sys.executable, "-c", _WHOLE_START).split())
    assert _LATER & first == set()
    assert "litestar" in first, "or nothing was started"
    again = set(run(tmp_path / "home", sys.executable, "-c", _WHOLE_START).split())
    assert _LATER & again == set()
