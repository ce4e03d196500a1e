"""What a service loads at its start, and what beside it, when it is ready already."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.e2e.service import DRAGOMAN, ISOLATED_PYTHON, ROOT, environment

pytestmark = pytest.mark.timeout(500)

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
_PACKAGES = {
    "annotated_doc", "annotated_types", "anyio", "attr", "attrs", "click", "cronsim", "dependency_injector", "httptools", "idna", "litestar",
    "msgspec", "multidict", "multipart", "opentelemetry", "prometheus_client", "pydantic", "pydantic_core", "shellingham", "sniffio", "sqlalchemy",
    "starlette", "structlog", "typer", "typing_extensions", "typing_inspection", "uvicorn", "uvloop", "yaml",
}  # fmt: skip
"""What an idle service loads of packages of others. One more takes memory in every service: it is
loaded on use, or stands here, and ADR 0028 says what it costs."""
_LOCKED = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==", re.MULTILINE)


def run(home: Path, *command: str) -> str:
    done = subprocess.run(
        command, env=environment(home), cwd=ROOT, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def packages_of_others() -> set[str]:
    """The names to import of everything that is installed with Dragoman."""
    locked = {_name(found) for found in _LOCKED.findall((ROOT / "requirements" / "runtime.txt").read_text())}
    return {name for name, of in packages_distributions().items() if locked & set(map(_name, of))}


def _name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


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
    assert {name.partition(".")[0] for name in first} & packages_of_others() <= _PACKAGES
    again = set(run(tmp_path / "home", sys.executable, "-c", _WHOLE_START).split())
    assert _LATER & again == set()
