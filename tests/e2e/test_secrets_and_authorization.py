"""Named secrets and OAuth from registration to a rotated key, over a real service: used where they
are meant, found nowhere else."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.from_thread
import httpx
import pytest

from tests.e2e.processes import command_line, descendants, environment_of, living, until
from tests.e2e.service import (
    DRAGOMAN,
    ISOLATED_PYTHON,
    ROOT,
    Json,
    Service,
    a_turn,
    environment,
    results_by_tool,
    serving,
)
from tests.e2e.test_planted_secrets import everything_the_api_says, found
from tests.integration.mcp.oauth_world import CLIENT, SECRET, World, oauth_world
from tests.integration.mcp.parts import SERVERS

pytestmark = pytest.mark.timeout(300)

NAMED = "planted-named-8c1e4f0b"
FORMER = "planted-former-3d7a90cc"
PLANTED = {
    "named": NAMED,
    "former value": FORMER,
    "client secret": SECRET,
    "registered client's secret": "registered-secret",
    "access token": "access-token-",
    "refresh token": "refresh-token-",
}


@contextmanager
def oauth_outside() -> Iterator[World]:
    """The two servers of `oauth_world`, in a thread of their own."""
    with anyio.from_thread.start_blocking_portal() as portal, portal.wrap_async_context_manager(oauth_world()) as world:
        yield world


def set_by_command(home: Path, name: str, value: str) -> None:
    """As a person does it, with the value on stdin."""
    done = subprocess.run(
        [*DRAGOMAN, "secret", "set", name],
        env=environment(home),
        cwd=ROOT,
        input=f"{value}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert value not in done.stdout + done.stderr


def register(service: Service, world: World) -> list[str]:
    telling = str(SERVERS / "telling_server.py")
    service.server("telling", *ISOLATED_PYTHON, telling, env={"MAIL_TOKEN": {"secret": "NAMED"}, "MODE": "fast"})
    service.server("stranger", *ISOLATED_PYTHON, telling)
    remote: Json = {"kind": "http", "url": world.protected.url}
    credentials: Json = {
        "type": "oauth_client_credentials",
        "client_id": CLIENT,
        "client_secret": {"secret": "CLIENT_SECRET"},
    }
    service.call("POST", "/mcp-servers", {**remote, "slug": "machine", "auth": credentials})
    service.call("POST", "/mcp-servers", {**remote, "slug": "person", "auth": {"type": "oauth_authorization_code"}})
    return ["telling", "stranger", "machine", "person"]


def authorize(service: Service, world: World) -> None:
    """A person agrees, and the browser comes back."""
    url = service.call("POST", "/mcp-servers/person/authorize")["authorization_url"]
    back = world.authorization.authorize(url)
    page = httpx.get(f"{service.url}/oauth/callback", params=back, trust_env=False, timeout=60)
    assert page.status_code == 200, page.text
    assert httpx.get(f"{service.url}/oauth/callback", params=back, trust_env=False, timeout=60).status_code == 422


def run_all(service: Service) -> dict[str, Json]:
    """One run that calls every server; the results by tool."""
    answer = service.run("caller")
    assert answer["run"]["status"] == "completed", answer["run"]
    return results_by_tool(answer["messages"])


@pytest.mark.requirement("B12", "C7")
def test_secrets_are_used_where_they_are_meant_and_found_nowhere_else_before_and_after_a_rotation(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with oauth_outside() as world:
        with serving(home, DRAGOMAN_LOG_LEVEL="debug", DRAGOMAN_LOG_FORMAT="json") as service:
            set_by_command(home, "NAMED", FORMER)
            set_by_command(home, "NAMED", NAMED)
            service.call("POST", "/secrets", {"name": "CLIENT_SECRET", "value": SECRET})
            slugs = register(service, world)
            calls: list[tuple[str, Json]] = [
                ("mcp__telling__tell", {}),
                ("mcp__stranger__tell", {}),
                ("mcp__machine__whoami", {}),
                ("mcp__person__whoami", {}),
            ]
            for slug in slugs[:3]:
                service.call("POST", f"/mcp-servers/{slug}/refresh")
            not_yet = service.call("POST", "/mcp-servers/person/refresh", expect=503)
            assert not_yet["reason"] == "needs_auth"
            assert service.call("GET", "/mcp-servers/person/status")["state"] == "needs_auth"
            authorize(service, world)
            service.call("POST", "/mcp-servers/person/refresh")
            service.agent("caller", service.script("calls", a_turn("", *calls), a_turn("Done.")), mcp_servers=slugs)

            results = run_all(service)
            assert not [name for name, result in results.items() if result["is_error"]], results
            told = str(results["mcp__telling__tell"]["result"])
            assert '"MODE": "fast"' in told
            assert f'"MAIL_TOKEN": {len(NAMED)}' in told  # its length says that the server has it
            assert "MAIL_TOKEN" not in str(results["mcp__stranger__tell"]["result"])
            assert world.protected.calls == 2

            nothing_in_processes(service)
            set_by_command(home, "UNUSED", "planted-unused-55aa")
            refused = service.call("DELETE", "/secrets/CLIENT_SECRET", expect=409)
            assert refused["used_by"] == "machine"
            former_key = (home / "secret.key").read_text()
            rotated = subprocess.run(
                [*DRAGOMAN, "secret", "rotate"],
                env=environment(home),
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert rotated.returncode == 0, rotated.stderr
            # 4 servers, 3 secrets, 2 grants
            assert "9 values were re-encrypted" in rotated.stderr
            assert former_key.strip() not in (home / "secret.key").read_text()
            assert found(PLANTED, everything_the_api_says(service)) == []
            assert found(PLANTED, b"".join(answers(service, "/secrets", "/secrets?limit=1"))) == []
        logs = [service.log.read_bytes(), service.output.read_bytes()]

        with serving(home, DRAGOMAN_LOG_LEVEL="debug") as service:
            results = run_all(service)
            assert not [name for name, result in results.items() if result["is_error"]], results
            assert world.authorization.asked == {"client_credentials": 1, "authorization_code": 1}
            assert found(PLANTED, everything_the_api_says(service)) == []
        logs += [service.log.read_bytes(), service.output.read_bytes()]
    assert found(PLANTED, b"".join(logs)) == []
    kept = {path.name: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert kept["dragoman.db"].startswith(b"SQLite format 3")
    for name, content in kept.items():
        assert found(PLANTED, content) == [], name


def answers(service: Service, *paths: str) -> list[bytes]:
    return [service.client.get(path).content for path in paths]


def nothing_in_processes(service: Service) -> None:
    """While servers run: arguments hold no secret, and an environment only its own server's."""
    hold = service.script("hold", a_turn("", ("mcp__telling__tell", {"hold": True})))
    service.agent("holder", hold, mcp_servers=["telling", "stranger"])
    run_id = service.start_run("holder")
    until(lambda: holders_of(NAMED, service), what="the server's process")
    for process in living():
        assert found(PLANTED, command_line(process.pid).encode()) == []
    for process in descendants(service.process.pid):
        known = {**PLANTED, "named": "\0nobody\0"} if process in holders_of(NAMED, service) else PLANTED
        assert found(known, environment_of(process.pid).encode()) == []
    assert NAMED not in environment_of(service.process.pid)
    service.call("POST", f"/runs/{run_id}/cancel")
    service.wait(run_id)


def holders_of(secret: str, service: Service) -> set[Any]:
    """The processes below the service whose environment holds it."""
    return {process for process in descendants(service.process.pid) if secret in environment_of(process.pid)}
