"""Tool loops over a provider that refuses a turn whose own items are missing: they survive whatever
happens in between."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.databases import PostgresDatabases
from tests.e2e.outside import outside
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, assert_consistent, serving
from tests.e2e.strict_provider import FailingResponses, strict_provider, watched_agent
from tests.e2e.test_planted_secrets import everything_the_api_says, forms
from tests.integration.llm.strict.provider import Said, StrictProvider
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.timeout(300)]

LOOK, HELD, NOTE = "mcp__watched__look", "mcp__watched__held_look", "mcp__watched__note"
ASKS: Json = {NOTE: {"decision": "require_approval"}}


@pytest.fixture
def there() -> Iterator[StrictProvider]:
    with strict_provider(FailingResponses()) as provider:
        yield provider


def held(gate: Path) -> tuple[str, Json]:
    return HELD, {"text": "around", "gate": str(gate)}


def until_held(log: Path, times: int = 1) -> None:
    until(lambda: log.exists() and log.read_text().count("called held_look") >= times, what="the held call")


def until_status(service: Service, run_id: str, status: str) -> None:
    until(lambda: service.call("GET", f"/runs/{run_id}")["status"] == status, what=status)


def reasoning_in(body: Json) -> list[str]:
    """The encrypted reasoning that a request has, in its order."""
    return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]


def counts(there: StrictProvider) -> list[int]:
    """How many reasoning items each request had."""
    return [len(reasoning_in(body)) for body in there.bodies]


def assert_completed(service: Service, run_id: str, output: str) -> Json:
    ended = service.wait(run_id)
    assert (ended["run"]["status"], ended["run"]["output"]) == ("completed", output), ended["run"]
    assert_consistent(ended["messages"], service.events(run_id))
    return ended


@pytest.mark.requirement("H1", "H2", "A12", "C3", "E3", "E4")
def test_parallel_calls_a_kill_an_approval_and_another_run_are_in_the_same_tool_loop(
    tmp_path: Path, there: StrictProvider
) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    there.say(
        Said(text="I look.", calls=((LOOK, {"text": "left"}), held(gate))),
        Said(calls=((NOTE, {"text": "seen"}), (LOOK, {"text": "right"}))),
        Said(text="Noted."),
        Said(text="You are welcome."),
    )
    with serving(home) as service:
        log = watched_agent(service, there, tool_policies=ASKS)
        run_id = service.start_run("worker")
        until_held(log)
        service.stop(signal.SIGKILL)  # between a call and its result
    gate.touch()
    with serving(home) as service:
        until_status(service, run_id, "requires_action")
        service.stop(signal.SIGKILL)  # while a person is waited for
    with serving(home) as service:
        [approval] = service.call("GET", "/approvals?state=pending")["data"]
        service.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
        ended = assert_completed(service, run_id, "Noted.")
        usage = ended["run"]["usage"]
        assert 0 < usage["reasoning_tokens"] < usage["output_tokens"]
        thread = f"/threads/{ended['run']['thread_id']}"
        again = service.call("POST", f"{thread}/runs/wait", {"agent": "worker", "input": "Thanks."})
        assert again["run"]["output"] == "You are welcome."
    assert there.refused == []
    assert counts(there) == [0, 1, 2, 3]


@pytest.mark.requirement("H1", "E5")
def test_a_rolled_back_run_leaves_nothing_to_the_next_one(tmp_path: Path, there: StrictProvider) -> None:
    gate = tmp_path / "gate"
    there.say(Said(calls=(held(gate),)), Said(text="From the beginning."), Said(text="Once more."))
    with serving(tmp_path / "home") as service:
        log = watched_agent(service, there)
        first = service.start_run("worker")
        until_held(log)
        thread = f"/threads/{service.call('GET', f'/runs/{first}')['thread_id']}"
        instead = {"agent": "worker", "input": "Rather this.", "multitask_strategy": "rollback"}
        assert service.call("POST", f"{thread}/runs/wait", instead)["run"]["output"] == "From the beginning."
        service.call("POST", f"{thread}/runs/wait", {"agent": "worker", "input": "Again."})
        assert service.call("GET", f"/runs/{first}")["status"] == "cancelled"
    assert there.refused == []
    assert counts(there) == [0, 0, 1]


@pytest.mark.requirement("H1", "A11")
def test_another_model_takes_over_in_mid_run_and_hands_back(tmp_path: Path) -> None:
    family, gates = FailingResponses(), [tmp_path / "one", tmp_path / "two"]
    with strict_provider(family) as there, serving(tmp_path / "home") as service:
        there.say(
            Said(text="I look.", calls=(held(gates[0]),)),
            Said(text="I look, too.", calls=(held(gates[1]),)),
            Said(text="All seen."),
        )
        log = watched_agent(service, there, fallback_models=["acme:other-test"])
        run_id = service.start_run("worker")
        until_held(log)
        family.down = frozenset({"gpt-test"})
        gates[0].touch()
        until_held(log, times=2)
        family.down = frozenset()
        gates[1].touch()
        assert_completed(service, run_id, "All seen.")
    assert {refusal.status for refusal in there.refused} == {503}
    answered = [body for body in there.bodies[1:] if body["model"] == "other-test"] + there.bodies[-1:]
    assert [(body["model"], len(reasoning_in(body))) for body in answered] == [("other-test", 0), ("gpt-test", 1)]


@pytest.mark.requirement("H1", "E4", "E6")
def test_another_worker_goes_on_with_the_items_of_a_killed_one(
    tmp_path: Path, there: StrictProvider, postgres_databases: PostgresDatabases
) -> None:
    gate = tmp_path / "gate"
    there.say(Said(calls=(held(gate),)), Said(calls=((LOOK, {"text": "left"}),)), Said(text="All seen."))
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        service = processes.serve("api", "--no-worker")
        log = watched_agent(service, there)
        doomed = processes.work("worker-1")
        run_id = service.start_run("worker")
        until_held(log)
        processes.work("worker-2")
        doomed.kill()
        gate.touch()
        assert_completed(service, run_id, "All seen.")
        stored = processes.ask("SELECT provider_items FROM message WHERE provider_items IS NOT NULL")
        assert len(stored) == 3
        assert not [sealed for (sealed,) in stored if b"encrypted_content" in bytes(sealed)]
    assert there.refused == []
    assert counts(there) == [0, 1, 2]


@pytest.mark.requirement("H1", "H2", "G1", "G2")
def test_items_are_found_nowhere_but_at_the_provider_and_shown_reasoning_is_an_event(
    tmp_path: Path, there: StrictProvider
) -> None:
    home = tmp_path / "home"
    there.say(
        Said(reasoning="I should look first.", calls=((LOOK, {"text": "left"}),)),
        Said(calls=((NOTE, {"text": "seen"}),)),
        Said(text="Noted."),
        Said(text="Again."),
    )
    with outside() as traced:
        settings = {
            "DRAGOMAN_LOG_LEVEL": "debug",
            "DRAGOMAN_LOG_FORMAT": "json",
            "LANGFUSE_PUBLIC_KEY": "pk-public",
            "LANGFUSE_SECRET_KEY": "sk-of-tracing",
            "LANGFUSE_HOST": traced.url,
        }
        with serving(home, **settings) as service:
            watched_agent(service, there, reasoning_summary=True)
            answer = service.run("worker")
            run_id = answer["run"]["id"]
            assert answer["run"]["output"] == "Noted."
            told = [event for event in service.events(run_id) if event["type"] == "reasoning.delta"]
            assert "".join(event["text"] for event in told) == "I should look first."
            service.call("POST", f"/threads/{answer['run']['thread_id']}/runs/wait", {"agent": "worker", "input": "?"})
            shown = [
                everything_the_api_says(service, at_least=20),
                json.dumps(answer).encode(),
                *console_pages(service, run_id),
            ]
            assert service.stop() == 0
            shown += [service.log.read_bytes(), service.output.read_bytes()]
        shown += traced.exports
    assert there.refused == []
    opaque = reasoning_in(there.bodies[-1])
    assert len(opaque) == 3
    stored = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert any(data.startswith(b"SQLite format 3") for data in stored)
    for secret in opaque:
        assert not [data for data in (*shown, *stored) if any(form in data for form in forms(secret))]


def console_pages(service: Service, run_id: str) -> list[bytes]:
    """The page of a run and what it loads."""
    with httpx.Client(base_url=service.url, trust_env=False, follow_redirects=True, timeout=60) as browser:
        signed_in = browser.post("/console/sign-in", data={"key": service.key}, headers={"origin": service.url})
        assert signed_in.is_success, signed_in.text
        pages = [browser.get(f"/console/runs/{run_id}{end}") for end in ("", "/events")]
    assert "reasoning.delta" in pages[1].text
    return [page.content for page in pages]
