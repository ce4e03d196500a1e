"""Remote agents over A2A as tools: an agent by the protocol's own library, called by runs under
policy, ledger and audit."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt import PyJWK

from tests.e2e.processes import until
from tests.e2e.service import ROOT, SERVERS, Json, Service, a_turn, serving

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
pytestmark = [pytest.mark.requirement("X5")]
pytest.importorskip("a2a.server")
types = pytest.importorskip("a2a.types")
json_format = pytest.importorskip("google.protobuf.json_format")
A2ACardResolver = pytest.importorskip("a2a.client").A2ACardResolver
create_signature_verifier = pytest.importorskip("a2a.utils.signing").create_signature_verifier

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
    httpx.delete(
        f"{service.url}/v1/mcp-servers/echo", headers=service.headers, trust_env=False, timeout=60
    ).raise_for_status()


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


@both
def test_files_of_a_remote_agent_are_results_and_artifacts_of_the_task_that_asked_for_them(
    service: Service, register: Callable[..., None], tmp_path: Path, binding: str
) -> None:
    with remote(tmp_path, binding) as url:
        register(url)
        name = asking(service, f"files-{BINDINGS.index(binding)}", {"message": "files"})
        task = told(service, name, "message:send")["task"]
        stream = told(service, name, "message:stream")
        limited = told(service, name, "message:send", acceptedOutputModes=["text/plain", "image/*"])["task"]
        listed = httpx.get(
            f"{service.url}/a2a/v1/{name}/tasks?includeArtifacts=true",
            headers=A2A | service.headers,
            trust_env=False,
            timeout=60,
        ).json()["tasks"]
    run = service.call("GET", f"/runs/{task['id']}")
    [message] = [
        message
        for message in service.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
        if message["role"] == "tool"
    ]
    [result] = message["content"]
    assert [image["media_type"] for image in result["images"]] == ["image/png"]
    assert [(file["media_type"], file["name"]) for file in result["files"]] == [("application/pdf", "paper.pdf")]
    assert "rows.csv:\ntown;Łódź" in result["result"]
    assert "notes.md:\n# Notes" in result["result"]
    assert "a2a:/all.zip (application/zip, 2 bytes)" in result["result"]
    assert files_of(task["artifacts"]) == FILES
    assert files_of(limited["artifacts"]) == FILES[:1]
    updates = [update["artifactUpdate"]["artifact"] for update in stream if "artifactUpdate" in update]
    assert files_of(updates) == FILES
    assert list(stream[-1]) == ["statusUpdate"]
    assert [files_of(one["artifacts"]) for one in listed] == [FILES[:1], FILES, FILES]


A2A = {"A2A-Version": "1.0"}
FILES = [("image/png", None), ("application/pdf", "paper.pdf")]


def told(service: Service, agent: str, operation: str, **configuration: object) -> Any:
    """The answer to a message, which the protocol's own types can read; the updates of a stream."""
    message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": "Go."}]}
    response = httpx.post(
        f"{service.url}/a2a/v1/{agent}/{operation}",
        json={"message": message, "configuration": configuration},
        headers=A2A | service.headers,
        timeout=60,
        trust_env=False,
    )
    if operation == "message:send":
        json_format.ParseDict(response.json(), types.SendMessageResponse())
        return response.json()
    updates = [
        json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line.startswith("data")
    ]
    for update in updates:
        json_format.ParseDict(update, types.StreamResponse())
    return updates


def files_of(artifacts: list[Json]) -> list[tuple[str, str | None]]:
    parts = [artifact["parts"][0] for artifact in artifacts]
    return [(part["mediaType"], part.get("filename")) for part in parts if "raw" in part]


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
        until(lambda: _is_told(service, run_id), what="the task")
        assert log.read_text() == "given wait\n"
        service.call("POST", f"/runs/{run_id}/cancel")
        until(lambda: "cancelled" in log.read_text(), what="the cancellation of the task")


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_the_task_of_a_remote_agent_is_continued_by_another_worker(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    home, gate, log = tmp_path / "home", tmp_path / "gate", tmp_path / "log"
    with remote(tmp_path) as url:
        with serving(home) as service:
            registered(service, url)
            run_id = service.start_run(asking(service, "waits", {"message": f"gate {gate}"}))
            until(lambda: _is_told(service, run_id), what="the task")
            service.stop(signal_number)
        gate.touch()
        with serving(home) as again:
            done = again.call("GET", f"/runs/{run_id}/wait")["run"]
    assert (done["status"], done["output"].partition("\n")[0]) == ("completed", f"echo gate {gate}")
    assert log.read_text().splitlines() == [f"given gate {gate}"]


def _is_told(service: Service, run_id: str) -> bool:
    """Whether the task is waited for: its state is progress of the second leg of the call."""
    return "TASK_STATE" in str(service.call("GET", f"/runs/{run_id}/events"))


def test_what_a_remote_agent_asks_is_asked_of_people(
    service: Service, register: Callable[..., None], tmp_path: Path
) -> None:
    with remote(tmp_path) as url:
        register(url, elicitation="ask")
        waiting = service.run(asking(service, "asker", {"message": "ask"}))["run"]
        assert waiting["status"] == "requires_action"
        [use] = waiting["pending"]
        assert use["elicitation"]["message"] == "Which city?"
        answered = resumed(service, waiting, {"action": "accept", "content": {"answer": "Lisbon"}})
        assert (answered["status"], answered["output"].partition("\n")[0]) == ("completed", "echo Lisbon")
        declining = service.run(asking(service, "decliner", {"message": "ask"}))["run"]
        assert "declined" in resumed(service, declining, {"action": "decline"})["output"]
    assert (tmp_path / "log").read_text().splitlines() == ["given ask", "given Lisbon", "given ask", "cancelled"]


def test_a_page_that_a_remote_agent_names_is_visited_by_people(
    service: Service, register: Callable[..., None], tmp_path: Path
) -> None:
    with remote(tmp_path) as url:
        register(url, elicitation="ask")
        waiting = service.run(asking(service, "visitor", {"message": "sign in"}))["run"]
        [use] = waiting["pending"]
        assert use["elicitation"]["url"] == "https://example.com/consent"
        service.call("POST", f"/runs/{waiting['id']}/cancel")


@pytest.mark.requirement("C3", "C6")
def test_an_approval_of_an_agent_of_dragoman_is_given_by_people_and_not_by_the_model(
    service: Service, register: Callable[..., None]
) -> None:
    service.watched_server("watched", trusted=True)
    note = "mcp__watched__note"
    notes = a_turn("May I?", (note, {"text": "x"})), a_turn("Noted.")
    policies = {note: {"decision": "require_approval"}}
    service.agent("inner", service.script("inner", *notes), mcp_servers=["watched"], tool_policies=policies)
    register(
        f"{service.url}/a2a/v1/inner", elicitation="ask", headers={"Authorization": service.headers["Authorization"]}
    )
    waiting = service.run(asking(service, "outer", {"message": "note it"}))["run"]
    [use] = waiting["pending"]
    assert use["elicitation"]["message"].startswith(f"Approve the call {note}(")
    done = resumed(service, waiting, {"action": "accept", "content": {"approved": True}})
    assert (done["status"], done["output"].partition("\n")[0]) == ("completed", "Noted.")


def resumed(service: Service, waiting: Json, answer: Json) -> Json:
    """The run after the answer to its one question."""
    [use] = waiting["pending"]
    result = {**answer, "request_id": use["elicitation"]["request_id"]}
    service.call(
        "POST", f"/runs/{waiting['id']}/resume", {"tool_results": [{"tool_call_id": use["id"], "result": result}]}
    )
    done: Json = service.call("GET", f"/runs/{waiting['id']}/wait")["run"]
    return done


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


@pytest.mark.requirement("C6")
async def test_cards_are_signed_and_only_those_of_trusted_keys_are_used(tmp_path: Path) -> None:
    key = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem, trusted = tmp_path / "a2a.pem", tmp_path / "trusted.json"
    pem.write_bytes(key)
    settings = {"DRAGOMAN_A2A_SIGNING_KEY": str(pem), "DRAGOMAN_A2A_TRUSTED_KEYS": str(trusted)}
    with serving(tmp_path / "home", **settings) as service:
        service.agent("inner", service.script("inner", a_turn("Noted.")))
        here = f"{service.url}/a2a/v1/inner"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            keys = (await http.get(f"{here}/.well-known/jwks.json")).json()
            verify = create_signature_verifier(lambda *_: PyJWK.from_dict(keys["keys"][0]), ["ES256"])
            card = await A2ACardResolver(http, here).get_agent_card(signature_verifier=verify)
        assert card.name == "inner"
        registered(service, here, headers={"Authorization": service.headers["Authorization"]})
        trusted.write_text(json.dumps({"keys": []}))
        asks = asking(service, "outer", {"message": "note it"})
        assert "Noted." not in service.run(asks)["run"]["output"]
        trusted.write_text(json.dumps(keys))
        service.call("POST", "/mcp-servers/echo/test")
        assert service.run(asks)["run"]["output"].startswith("Noted.")
