"""The command line beside a running service."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.dragoman_process import DEADLINE_S, Dragoman, read_until

pytestmark = pytest.mark.timeout(300)


@contextmanager
def serving(dragoman: Dragoman) -> Iterator["subprocess.Popen[str]"]:
    """`dragoman serve`, ready; stopped at the end if it still runs."""
    process = dragoman.start("serve")
    try:
        read_until(process.stdout, "Dragoman is ready on")
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def dragoman(tmp_path: Path) -> Dragoman:
    return Dragoman(tmp_path / "home")


@pytest.mark.requirement("E1", "E6")
def test_commands_go_through_the_service_that_owns_home(dragoman: Dragoman) -> None:
    model = dragoman.script("hello", {"text": "You said {{ user }}."})
    with serving(dragoman) as service:
        assert f"(pid {service.pid})" in dragoman.run("doctor").out
        dragoman.add_time_server()
        assert "2 tools" in dragoman.run("doctor").out
        dragoman.run("run", "first", "--model", model)
        with ThreadPoolExecutor() as pool:
            said = list(pool.map(lambda text: dragoman.run("run", text, "--agent", "cli").out, ["one", "two"]))
        assert said == ["You said one.\n", "You said two.\n"]
        refused = dragoman.run("serve", exit_code=1)
        assert f"(pid {service.pid}) owns the data directory" in refused.err
        service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=DEADLINE_S) == 0
    assert not (dragoman.home / "serve.json").exists()
    assert "cli" in dragoman.run("agent", "list").out


@pytest.mark.requirement("E6")
def test_after_a_killed_service_commands_open_home_themselves(dragoman: Dragoman) -> None:
    with serving(dragoman) as service:
        service.kill()
        service.wait(timeout=DEADLINE_S)
    assert (dragoman.home / "serve.json").exists()
    assert dragoman.run("agent", "list", "--json").json == {"data": [], "next_cursor": None}
    assert "does not answer" in dragoman.run("doctor").out


@pytest.mark.requirement("C6")
def test_a_key_made_by_the_command_line_does_what_its_role_allows_until_it_is_revoked(dragoman: Dragoman) -> None:
    with serving(dragoman):
        # With its address, commands need not ask whether the service answers.
        dragoman.environment["DRAGOMAN_URL"] = json.loads((dragoman.home / "serve.json").read_text())["url"]
        dragoman.environment["DRAGOMAN_API_KEY"] = (dragoman.home / "admin.key").read_text().strip()
        made = dragoman.run("key", "create", "ci", "--role", "viewer")
        token = made.out.strip()
        assert token.startswith("dgm_")
        identifier = re.findall(r"key_\w+", made.err)[0]
        assert token not in dragoman.run("key", "list").out
        dragoman.run("agent", "list", DRAGOMAN_API_KEY=token)
        refused = dragoman.run("key", "create", "more", exit_code=1, DRAGOMAN_API_KEY=token)
        assert "role" in refused.err
        dragoman.run("key", "revoke", identifier)
        dragoman.run("agent", "list", exit_code=1, DRAGOMAN_API_KEY=token)


def test_a_url_where_nothing_answers_is_named(dragoman: Dragoman) -> None:
    refused = dragoman.run("agent", "list", exit_code=1, DRAGOMAN_URL="http://127.0.0.1:9", DRAGOMAN_API_KEY="dgm_x")
    assert "http://127.0.0.1:9" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert not dragoman.home.exists()
