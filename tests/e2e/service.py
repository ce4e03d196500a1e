"""`dragoman serve` as a user runs it: a real process with its own HOME on a free port, stopped and
checked at the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from infrastructure.persistence.schema.upgrade import upgrade
from tests.e2e.processes import carrying, descendants, living, until

ROOT = Path(__file__).resolve().parents[2]
SERVERS = Path(__file__).with_name("servers")
DRAGOMAN = (sys.executable, "-m", "interfaces.cli")
ISOLATED_PYTHON = (sys.executable, "-I", "-S")
START_S = 120.0
STOP_S = 60.0
TERMINAL = {"completed", "incomplete", "failed", "cancelled", "halted"}

Json = dict[str, Any]


def environment(home: Path, **settings: str) -> dict[str, str]:
    """What the process gets: the tests' environment, this HOME, a free port, servers on this
    machine, and `settings` as they are named. Servers of tests are not confined, because they write
    into HOME (their logs and gates); tests of confinement name a sandbox."""
    local = {"DRAGOMAN_PORT": "0", "DRAGOMAN_EGRESS_ALLOW": "127.0.0.0/8", "DRAGOMAN_MCP_SANDBOX": "off"}
    return {**os.environ, "DRAGOMAN_HOME": str(home), **local, **settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service. `client` is authenticated and stands on /v1; `log` is what the process
    wrote to stderr."""

    home: Path
    process: "subprocess.Popen[bytes]"
    url: str
    key: str
    client: httpx.Client
    log: Path
    output: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def call(self, method: str, path: str, body: object = None, *, expect: int | None = None) -> Json:
        """One request that succeeds, or answers with the status expected; the answer's JSON."""
        response = self.client.request(method, path, json=body)
        if expect is None:
            assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        else:
            assert response.status_code == expect, f"{method} {path}: {response.status_code} {response.text}"
        return dict(response.json())

    def script(self, name: str, *turns: Json, **settings: Any) -> str:
        """Write a scripted model; the name by which agents use it."""
        folder = self.home / "scripted"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(json.dumps({"turns": turns, **settings}), encoding="utf-8")
        return f"scripted:{name}.yaml"

    def agent(self, name: str, model: str, **settings: object) -> Json:
        """Save an agent."""
        return self.call("POST", "/agents", {"name": name, "model": model, **settings})

    def server(self, slug: str, *command: str, **settings: object) -> Json:
        """Register a stdio server."""
        body = {"slug": slug, "kind": "custom", "command": command[0], "args": list(command[1:]), **settings}
        return self.call("POST", "/mcp-servers", body)

    def watched_server(self, slug: str, **settings: object) -> Path:
        """Register servers/watched_server.py; the file it logs to."""
        log = self.home / f"{slug}.log"
        self.server(slug, *ISOLATED_PYTHON, str(SERVERS / "watched_server.py"), str(log), **settings)
        return log

    def start_run(self, agent: str, text: str = "Go.", **settings: object) -> str:
        """A run in the background; its id."""
        return str(self.call("POST", "/runs", {"agent": agent, "input": text, **settings}, expect=202)["id"])

    def run(self, agent: str, text: str = "Go.", **settings: object) -> Json:
        """A run to its end: `{run, messages}`."""
        return self.call("POST", "/runs/wait", {"agent": agent, "input": text, **settings})

    def wait(self, run_id: str, timeout_s: float = 120.0) -> Json:
        """The run once it has ended: `{run, messages}`."""
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.call("GET", f"/runs/{run_id}/wait?timeout_s={min(timeout_s, 30.0)}")
            if answer["run"]["status"] in TERMINAL:
                return answer
            assert answer["run"]["status"] != "requires_action", answer["run"]
            assert time.monotonic() < deadline, answer["run"]

    def events(self, run_id: str) -> list[Json]:
        """All events of a run so far."""
        events: list[Json] = []
        after = 0
        while True:
            page = self.call("GET", f"/runs/{run_id}/events?limit=100&after={after}")
            events += page["data"]
            if page["next_cursor"] is None:
                return events
            after = events[-1]["seq"]

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """End the process and wait for it; its exit status."""
        self.process.send_signal(signal_number)
        return self.process.wait(timeout=STOP_S)


@contextmanager
def serving(home: Path, *arguments: str, **settings: str) -> Iterator[Service]:
    """Start the service, yield it once it is ready, and stop it with SIGTERM: it must end with
    status 0 and leave no process behind. A block that has ended the process itself answers for what
    is left.

    A HOME that is not there yet gets a migrated database without a row, which would take a third of
    the start."""
    if not home.exists() and "DRAGOMAN_DATABASE_URL" not in settings:
        home.mkdir(mode=0o700, parents=True)
        (home / "dragoman.db").touch(mode=0o600)
        (home / "dragoman.db").write_bytes(migrated_database())
    with starting(home, *arguments, **settings) as service:
        yield service


@cache
def migrated_database() -> bytes:
    """A database of the newest schema without a row."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "migrated.db"
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()


@contextmanager
def starting(home: Path, *arguments: str, **settings: str) -> Iterator[Service]:
    """The same, from nothing if there is nothing."""
    home.parent.mkdir(exist_ok=True)
    log, output = home.with_name(f"{home.name}.stderr"), home.with_name(f"{home.name}.stdout")
    with log.open("ab") as stderr, output.open("ab") as stdout:
        process = subprocess.Popen(
            [*DRAGOMAN, "serve", *arguments],
            env=environment(home, **settings),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        url = _address(home, process, log)
        key = (home / "admin.key").read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=120.0, trust_env=False) as client:
            yield Service(home=home, process=process, url=url, key=key, client=client, log=log, output=output)
        if process.poll() is None:
            started = descendants(process.pid)
            process.terminate()
            assert process.wait(timeout=STOP_S) == 0, log.read_text(encoding="utf-8")[-4000:]
            # One that had to be killed at the stop may take a moment to end.
            until(lambda: not started & living().keys(), what="the end of what the service started")
            until(lambda: not carrying(str(home)), what="the end of what has the path of HOME")
            assert not (home / "serve.json").exists()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(home: Path, process: "subprocess.Popen[bytes]", log: Path) -> str:
    announced = home / "serve.json"

    def ready() -> bool:
        assert process.poll() is None, f"serve ended: {log.read_text(encoding='utf-8')[-4000:]}"
        # A file of a killed process before this one names another process.
        return announced.exists() and json.loads(announced.read_text(encoding="utf-8"))["pid"] == process.pid

    until(ready, START_S, what="serve.json")
    return str(json.loads(announced.read_text(encoding="utf-8"))["url"])


def serve_to_its_end(home: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """`dragoman serve` that is expected to end by itself."""
    return subprocess.run(
        [*DRAGOMAN, "serve"],
        env=environment(home, **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


def a_turn(text: str = "", *calls: tuple[str, Mapping[str, object]]) -> Json:
    """A turn of a script: text, and calls as (tool, arguments)."""
    return {"text": text, "calls": [{"tool": tool, "arguments": dict(arguments)} for tool, arguments in calls]}


def parts(messages: Sequence[Json], kind: str) -> list[Json]:
    """The content parts of a kind, in order."""
    return [part for message in messages for part in message["content"] if part["type"] == kind]


def results_by_tool(messages: Sequence[Json]) -> dict[str, Json]:
    """The last result of each tool."""
    return {part["tool_name"]: part for part in parts(messages, "tool_result")}


def assert_consistent(messages: Sequence[Json], events: Sequence[Json]) -> None:
    """Every tool call has exactly one result, which comes after it, and the events have no gap."""
    asked = [part["id"] for part in parts(messages, "tool_use")]
    answered = [part["tool_id"] for part in parts(messages, "tool_result")]
    assert sorted(asked) == sorted(answered)
    assert len(set(answered)) == len(answered)
    pending: set[str] = set()
    for message in messages:
        for part in message["content"]:
            if part["type"] == "tool_use":
                pending.add(part["id"])
            elif part["type"] == "tool_result":
                pending.remove(part["tool_id"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
