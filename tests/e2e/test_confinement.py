"""Started servers of a service on its defaults: what they attempt is denied, what they need is
there, and the operator sees how they are confined."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.completeness import beyond
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Done
from tests.e2e.processes import Process, command_line, environment_of, living, until
from tests.e2e.service import Json, Service, serving
from tests.integration.confinement.world import HOSTILE_PROGRAM, MACHINE

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not MACHINE.landlock and not MACHINE.bubblewrap, reason=beyond("nothing here confines processes")
    ),
]

AUTO = {"DRAGOMAN_MCP_SANDBOX": "auto"}
SECRET = "the-key-of-another-server"
QUIET = """
import json, os, sys
open(os.environ["HOME"] + "/data.json", "w").write("private")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        info = {"name": "quiet", "version": "1"}
        begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        result = begun if message["method"] == "initialize" else {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def data_of(service: Service, server: Json) -> Path:
    (organization,) = {path.name for path in (service.home / "servers" / ".data").iterdir()}
    return service.home / "servers" / ".data" / organization / str(server["id"])


def connected(service: Service, slug: str, *command: str, **settings: object) -> Json:
    server = service.server(slug, *command, isolation="shared", **settings)
    service.call("POST", f"/mcp-servers/{slug}/connect")
    return server


def process_with(text: str) -> int:
    """The process that runs our server: the last one started with this in its environment."""
    found = [process for process in _processes_with(text) if "--lifeline" not in command_line(process.pid)]
    return max(found, key=lambda process: (int(process.started), process.pid)).pid


@pytest.mark.requirement("S1")
def test_a_hostile_server_reaches_neither_the_service_nor_another_server(tmp_path: Path) -> None:
    with serving(tmp_path / "home", **AUTO) as service:
        quiet = connected(service, "quiet", sys.executable, "-I", "-c", QUIET, env={"API_KEY": SECRET})
        other = data_of(service, quiet)
        assert (other / "data.json").read_text() == "private"
        own = service.home / "servers" / ".data" / other.parent.name
        world: Json = {
            "home": str(service.home),
            "own": str(own),
            "other": str(other),
            "user_home": str(Path.home()),
            "temporary": str(tmp_path / "shared"),
            "socket": str(tmp_path / "none"),
            "abstract": "none",
            "service": service.process.pid,
            "victim": process_with(SECRET),
            "launcher": 0,
            "port": 1,
            "attempts": [],
        }
        hostile = connected(service, "hostile", *HOSTILE_PROGRAM, json.dumps(world), "serve")
        outcomes = json.loads((data_of(service, hostile) / "outcomes.json").read_text())
        assert len(outcomes) > 100
        assert {name: outcome for name, outcome in outcomes.items() if not outcome.startswith("denied")} == {}
        assert service.call("GET", "/mcp-servers/quiet/status")["state"] == "connected"


@pytest.mark.requirement("S1")
def test_a_server_reads_what_its_command_names_and_what_the_operator_opens(tmp_path: Path) -> None:
    for name in ("named", "readable", "writable", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    script = (
        """
import json, os, sys
found = {}
for name in ("named", "readable", "writable", "closed"):
    for mode in "ra":
        try:
            open(f"{os.environ['BASE']}/{name}/file", mode).close()
            found[name] = found.get(name, "") + mode
        except OSError:
            pass
json.dump(found, open(os.environ["HOME"] + "/found.json", "w"))
"""
        + QUIET
    )
    granted = {
        "DRAGOMAN_MCP_READABLE": str(tmp_path / "readable"),
        "DRAGOMAN_MCP_WRITABLE": str(tmp_path / "writable"),
    }
    with serving(tmp_path / "home", **AUTO, **granted) as service:
        command = (sys.executable, "-I", "-c", script, str(tmp_path / "named" / "file"))
        server = connected(service, "reader", *command, env={"BASE": str(tmp_path)})
        found = json.loads((data_of(service, server) / "found.json").read_text())
    assert found == {"named": "r", "readable": "r", "writable": "ra"}


@pytest.mark.requirement("S1")
@pytest.mark.skipif(not MACHINE.networks, reason=beyond("no process has a network alone here"))
def test_a_server_with_an_allowlist_reaches_its_hosts_through_a_proxy_and_refusals_are_logged(tmp_path: Path) -> None:
    script = (
        """
import json, os, urllib.request
found = []
for url in (os.environ["ALLOWED"], "http://192.0.2.7/"):
    try:
        found.append(urllib.request.urlopen(url, timeout=60).read().decode())
    except OSError as exc:
        found.append(str(exc))
json.dump(found, open(os.environ["HOME"] + "/found.json", "w"))
"""
        + QUIET
    )
    with (
        ThreadingHTTPServer(("127.0.0.2", 0), Greeting) as target,
        serving(tmp_path / "home", **AUTO, DRAGOMAN_EGRESS_ALLOW="127.0.0.2") as service,
    ):
        threading.Thread(target=target.serve_forever, daemon=True).start()
        address = f"127.0.0.2:{target.server_port}"
        network = {"network": "allowlist", "network_hosts": [address]}
        command = (sys.executable, "-I", "-c", script)
        server = connected(service, "limited", *command, env={"ALLOWED": f"http://{address}/"}, **network)
        found = json.loads((data_of(service, server) / "found.json").read_text())
        log = service.call("GET", "/mcp-servers/limited/logs")["text"]
        target.shutdown()
    assert found == ["hello", "HTTP Error 403: Forbidden"]
    assert "connection refused: 192.0.2.7:80 is not in the server's allowlist" in log
    (line,) = [line for line in service.log.read_text().splitlines() if "connection of an MCP server refused" in line]
    assert str(server["id"]) in line


class Greeting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.requirement("S2")
@pytest.mark.parametrize("ending", ["disconnect", "delete", "kill"])
def test_what_a_server_leaves_behind_ends_with_it(tmp_path: Path, ending: str) -> None:
    escaping = (
        """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
        for target in (os.getppid(), 1):
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                pass
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2): os.dup2(null, descriptor)
        while True: time.sleep(60)
    os._exit(0)
"""
        + QUIET
    )
    with serving(tmp_path / "home", **AUTO) as service:
        connected(service, "escaping", sys.executable, "-I", "-c", escaping, env={"API_KEY": SECRET + ending})
        until(lambda: len(_processes_with(SECRET + ending)) >= 2, what="the server and what it leaves behind")
        match ending:
            case "disconnect":
                service.call("POST", "/mcp-servers/escaping/disconnect")
            case "delete":
                assert service.client.delete("/mcp-servers/escaping").is_success
            case _:
                os.kill(service.process.pid, 9)
                service.process.wait()
        until(lambda: not _processes_with(SECRET + ending), what="the end of what the server started")


def without_a_problem(dragoman: DragomanHere, **settings: str) -> Done:
    """What the doctor says; that a service answers late is a problem to it, too."""
    said: list[Done] = []

    def is_well() -> bool:
        said.append(dragoman.outcome("doctor", "--json", **settings))
        return said[-1].exit_code == 0

    until(is_well, what="a doctor without a problem")
    return said[-1]


@pytest.mark.requirement("S1")
def test_the_doctor_says_how_servers_are_confined(tmp_path: Path) -> None:
    with serving(tmp_path / "home", **AUTO) as service:
        dragoman = DragomanHere(service.home)
        found = without_a_problem(dragoman).json["findings"]
        told = without_a_problem(dragoman, DRAGOMAN_MCP_SANDBOX="off").out
    assert isinstance(found, list)
    (sandbox,) = [finding for finding in found if isinstance(finding, dict) and finding["check"] == "sandbox"]
    assert sandbox["state"] == "ok"
    assert "seccomp" in str(sandbox["detail"])
    assert "DRAGOMAN_MCP_SANDBOX=off" in told


@pytest.mark.requirement("S1")
def test_where_confinement_would_leave_home_open_no_server_is_started(tmp_path: Path) -> None:
    with serving(tmp_path / "home", DRAGOMAN_MCP_SANDBOX="auto", DRAGOMAN_MCP_READABLE=str(tmp_path)) as service:
        body = {"kind": "custom", "command": sys.executable, "args": ["-c", QUIET]}
        outcome = service.call("POST", "/mcp-servers/test", body)
        assert not outcome["ok"]
        assert "was not started" in outcome["error"]["detail"]


def _processes_with(text: str) -> set[Process]:
    """All living processes with this in their environment."""
    return {process for process in living() if text in environment_of(process.pid)}
