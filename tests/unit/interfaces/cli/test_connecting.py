"""Which service a command talks to."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interfaces.cli.connecting import connected, running_service
from interfaces.cli.failures import BadUsage, CommandFailure


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    return tmp_path


@asynccontextmanager
async def answering(status: str) -> AsyncIterator[str]:
    """A server that answers everything with this status; gives its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def announce(home: Path, url: str, pid: int) -> None:
    (home / "serve.json").write_text(json.dumps({"url": url, "pid": pid}), encoding="utf-8")


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


async def test_a_service_that_owns_home_and_answers_is_found(home: Path) -> None:
    async with answering("200 OK") as url:
        announce(home, f"{url}/", os.getpid())
        (home / "admin.key").write_text("dgm_1\n", encoding="utf-8")
        running = await running_service(home)
        assert running is not None
        assert (running.url, running.pid) == (url, os.getpid())
        async with connected(worker=False) as api:
            assert api.address == url
            assert await api.get("/v1/agents") == {}


async def test_what_a_dead_service_left_behind_counts_for_nothing(home: Path) -> None:
    async with answering("200 OK") as url:
        announce(home, url, dead_pid())
        assert await running_service(home) is None


async def test_another_process_at_the_pid_and_another_server_at_the_port_are_not_the_service(home: Path) -> None:
    async with answering("404 Not Found") as url:
        announce(home, url, os.getpid())
        assert await running_service(home) is None
    announce(home, url, os.getpid())
    assert await running_service(home) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"url": "http://x", "pid": "y"}', '{"url": "::", "pid": 1}', '{"url": "http://x", "pid": 0}'],
)
async def test_a_broken_announcement_counts_for_nothing(home: Path, text: str) -> None:
    (home / "serve.json").write_text(text, encoding="utf-8")
    assert await running_service(home) is None


async def test_a_running_service_without_a_readable_key_asks_for_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with answering("200 OK") as url:
        announce(home, url, os.getpid())
        with pytest.raises(CommandFailure, match="DRAGOMAN_API_KEY"):
            async with connected(worker=False):
                pass
        monkeypatch.setenv("DRAGOMAN_API_KEY", "dgm_2")
        async with connected(worker=False) as api:
            assert api.address == url


async def test_the_url_of_the_settings_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(home, "http://elsewhere.test", os.getpid())
    monkeypatch.setenv("DRAGOMAN_URL", "http://service.test/")
    with pytest.raises(BadUsage, match="DRAGOMAN_API_KEY"):
        async with connected(worker=False):
            pass
    monkeypatch.setenv("DRAGOMAN_API_KEY", "dgm_3")
    async with connected(worker=False) as api:
        assert api.address == "http://service.test"


async def test_wrong_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_URL", "nonsense")
    with pytest.raises(BadUsage, match="DRAGOMAN_URL"):
        async with connected(worker=False):
            pass


async def test_a_setting_with_a_typing_error_is_warned_about(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PROT", "1")
    remarks: list[str] = []
    with pytest.raises(CommandFailure, match="There is no service here"):
        async with connected(worker=False, remark=remarks.append):
            pass
    assert ["DRAGOMAN_PORT" in remark for remark in remarks] == [True]
    assert list(home.iterdir()) == []
