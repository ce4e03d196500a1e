"""Servers of kind oci of a whole service: registered, installed, called, and gone with whatever
ended them. The engine is a double on a socket, which a killed service leaves alone."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.doubles.container_engine import FakeEngine
from tests.doubles.engine_containers import images
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, serving
from tests.integration.mcp.parts import SERVERS

pytestmark = pytest.mark.timeout(300)

DEAF = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
exec(open(sys.argv[1]).read())
while True: signal.pause()
"""
PLAIN = str(SERVERS / "plain_server.py")
IMAGES = images(plain=(sys.executable, "-I", "-S", PLAIN), deaf=(sys.executable, "-I", "-S", "-c", DEAF, PLAIN))


@contextmanager
def an_engine(path: Path) -> Iterator[FakeEngine]:
    """An engine in a thread of its own."""
    fake, ready = FakeEngine(path), Event()
    fake.registry |= IMAGES
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        await fake.start()
        ready.set()
        await done.wait()
        await fake.stop()

    thread = Thread(target=lambda: loop.run_until_complete(serve()), name="engine")
    thread.start()
    assert ready.wait(60)
    try:
        yield fake
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(60)
        loop.close()


def settings_for(fake: FakeEngine, **settings: str) -> dict[str, str]:
    return {"DRAGOMAN_MCP_CONTAINER_ENGINE": f"unix://{fake.path}", **settings}


def connected(service: Service, name: str) -> Json:
    server = service.call(
        "POST", "/mcp-servers", {"slug": name, "kind": "oci", "package": f"mcp/{name}", "isolation": "shared"}
    )
    service.call("POST", f"/mcp-servers/{name}/install")
    until(
        lambda: service.call("GET", f"/mcp-servers/{name}/status")["state"] == "disconnected", what="the installation"
    )
    service.call("POST", f"/mcp-servers/{name}/connect")
    return server


@pytest.mark.requirement("B1", "S1")
def test_a_container_image_is_added_installed_and_tested_from_the_terminal(tmp_path: Path) -> None:
    with an_engine(tmp_path / "engine.sock") as fake, serving(tmp_path / "home", **settings_for(fake)) as service:
        dragoman = DragomanHere(service.home)
        dragoman.run("mcp", "add", "plain", "--kind", "oci", "--package", "mcp/plain", "--env", "A=b", exit_code=0)
        dragoman.run("mcp", "install", "plain", exit_code=0)
        tested = dragoman.run("mcp", "test", "plain", "--json", exit_code=0).json
        assert isinstance(tested, dict)
        assert tested["ok"]
        status = service.call("GET", "/mcp-servers/plain/status")
        assert status["installed_version"] == f"latest@{IMAGES['mcp/plain:latest'].digest}"
        until(lambda: not fake.containers, what="the end of the tested container")
        assert len(fake.removed) == 2  # also installing tests it
        engine_of = f"unix://{fake.path}"
        found = dragoman.run("doctor", "--json", DRAGOMAN_MCP_CONTAINER_ENGINE=engine_of).json["findings"]
    assert isinstance(found, list)
    (engine,) = [finding for finding in found if isinstance(finding, dict) and finding["check"] == "containers"]
    assert (engine["state"], engine["detail"]) == ("ok", f"Docker 29.0.1, {fake.path}")


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("ending", ["disconnect", "delete", "stop"])
def test_a_container_ends_with_its_server(tmp_path: Path, ending: str) -> None:
    with an_engine(tmp_path / "engine.sock") as fake, serving(tmp_path / "home", **settings_for(fake)) as service:
        connected(service, "deaf")
        # That in which it was tested may take a moment to end.
        until(lambda: len(fake.running()) == 1, what="one container")
        match ending:
            case "disconnect":
                service.call("POST", "/mcp-servers/deaf/disconnect")
            case "delete":
                assert service.client.delete("/mcp-servers/deaf").is_success
            case _:
                assert service.stop() == 0
        until(lambda: not fake.containers, what="the end of the container")


@pytest.mark.requirement("S2")
def test_the_container_of_a_killed_service_ends_at_the_next_start(tmp_path: Path) -> None:
    with an_engine(tmp_path / "engine.sock") as fake:
        with serving(tmp_path / "home", **settings_for(fake)) as service:
            connected(service, "deaf")
            until(lambda: len(fake.running()) == 1, what="one container")
            os.kill(service.process.pid, 9)
            service.process.wait()
        (left,) = fake.running()
        with serving(tmp_path / "home", **settings_for(fake)) as service:
            until(lambda: not fake.containers, what="the end of the container that was left")
            service.call("POST", "/mcp-servers/deaf/connect")
            (started,) = fake.running()
            assert started.id != left.id


@pytest.mark.requirement("S1")
def test_the_profile_container_starts_images_only(tmp_path: Path) -> None:
    with (
        an_engine(tmp_path / "engine.sock") as fake,
        serving(tmp_path / "home", **settings_for(fake, DRAGOMAN_MCP_SANDBOX="container")) as service,
    ):
        body = {"kind": "custom", "command": sys.executable, "args": [PLAIN]}
        outcome = service.call("POST", "/mcp-servers/test", body)
        assert not outcome["ok"]
        assert "only servers of kind oci" in outcome["error"]["detail"]
        connected(service, "plain")
        assert service.call("GET", "/mcp-servers/plain/status")["state"] == "connected"
        dragoman = DragomanHere(service.home)
        without = dragoman.outcome(
            "doctor", "--json", DRAGOMAN_MCP_SANDBOX="container", DRAGOMAN_MCP_CONTAINER_ENGINE="none"
        )
    states = {each["check"]: each["state"] for each in json.loads(without.out)["findings"]}
    assert (states["sandbox"], states["containers"]) == ("ok", "problem")
