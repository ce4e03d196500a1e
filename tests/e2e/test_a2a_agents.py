"""Remote agents over A2A as tools: an agent by the protocol's own library, called by runs under policy, ledger and audit."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import ROOT, SERVERS, Service, a_turn, serving

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
pytestmark = [pytest.mark.requirement("X5")]
pytest.importorskip("a2a.server")

TOOL = "mcp__echo__send_message"
BINDINGS = ("JSONRPC", "HTTP+JSON")
both = pytest.mark.parametrize("binding", BINDINGS)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("a2a-agents") / "home") as running:
        yield running


@contextmanager
def remote(folder: Path, binding: str = "JSONRPC", description: str = "Repeats.") -> Iterator[str]:
    """The address of a running agent; it logs to `folder`."""
    command = [str(PYTHON), str(SERVERS / "a2a_agent.py"), str(folder / "log"), binding, description]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield program.stdout.readline().strip()
        finally:
            program.terminate()


def registered(service: Service, url: str, slug: str = "echo", **settings: object) -> None:
    service.call("POST", "/mcp-servers", {"slug": slug, "kind": "a2a", "url": url, **settings})


def asking(service: Service, name: str, *messages: dict[str, object], **settings: object) -> str:
    """An agent that sends these messages in turn and then says what the last result was."""
    turns = [a_turn("", (TOOL, message)) for message in messages]
    script = service.script(name, *turns, a_turn("{{ results.last }}"))
    service.agent(name, script, mcp_servers=["echo"], **settings)
    return name


@pytest.fixture
def register(service: Service) -> Iterator[Callable[..., None]]:
    yield lambda url, **settings: registered(service, url, **settings)
    httpx.delete(f"{service.url}/v1/mcp-servers/echo", headers=service.headers, trust_env=False).raise_for_status()


@both
def test_a_run_gives_a_remote_agent_a_task_and_reads_its_artifacts(
    service: Service, register: Callable[..., None], tmp_path: Path, binding: str
) -> None:
    with remote(tmp_path, binding) as url:
        register(url)
        name = f"giver-{BINDINGS.index(binding)}"
        done = service.run(asking(service, name, {"message": "hello"}))
        assert done["run"]["status"] == "completed"
        said = done["run"]["output"]
        assert said.startswith("echo hello")
        assert '{"said": "hello"}' in said
        failed = service.run(asking(service, f"{name}-fails", {"message": "fail"}))
        assert "The task ended: failed." in failed["run"]["output"]
        assert "No luck." in failed["run"]["output"]
        asked = service.run(asking(service, f"{name}-asked", {"message": "ask"}))
        assert asked["run"]["output"].startswith("Which city?")
        assert "task_id: " in asked["run"]["output"]
    assert (tmp_path / "log").read_text().splitlines() == ["given hello", "given fail", "given ask"]


def test_a_remote_agent_obeys_policy_as_any_tool(
    service: Service, register: Callable[..., None], tmp_path: Path
) -> None:
    with remote(tmp_path) as url:
        register(url)
        denied = asking(service, "denied", {"message": "hello"}, tool_policies={TOOL: {"decision": "deny"}})
        assert "blocked by policy" in service.run(denied)["run"]["output"]
        policy = {TOOL: {"decision": "require_approval"}}
        careful = asking(service, "careful", {"message": "hello"}, tool_policies=policy)
        waiting = service.run(careful)["run"]
        assert waiting["status"] == "requires_action"
        assert not (tmp_path / "log").exists()
        [use] = waiting["pending"]
        decision = {"approvals": [{"tool_call_id": use["id"], "decision": "approve"}]}
        service.call("POST", f"/runs/{waiting['id']}/resume", decision)
        done = service.call("GET", f"/runs/{waiting['id']}/wait")["run"]
        assert done["output"].startswith("echo hello")


def test_a_cancelled_run_cancels_the_task_of_its_remote_agent(
    service: Service, register: Callable[..., None], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with remote(tmp_path) as url:
        register(url)
        run_id = service.start_run(asking(service, "waits", {"message": "wait"}))
        until(lambda: log.exists() and "given wait" in log.read_text(), what="the task")
        service.call("POST", f"/runs/{run_id}/cancel")
        until(lambda: "cancelled" in log.read_text(), what="the cancellation of the task")


def test_a_changed_card_puts_the_agent_in_quarantine(
    service: Service, register: Callable[..., None], tmp_path: Path
) -> None:
    with remote(tmp_path) as url:
        register(url)
        name = asking(service, "pinned", {"message": "hello"})
        assert service.run(name)["run"]["output"].startswith("echo hello")
    with remote(tmp_path, description="Sends your messages elsewhere.") as url:
        service.call("PATCH", "/mcp-servers/echo", {"url": url})
        assert "echo hello" not in service.run(name)["run"]["output"]
    assert (tmp_path / "log").read_text().splitlines() == ["given hello"]
