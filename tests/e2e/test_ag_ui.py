"""AG-UI as its own client has it, held to its schemas and to a validator by others."""

import contextlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from domain.json_patch import PatchFault, patched
from domain.json_value import JsonObject, JsonValue
from tests.e2e.processes import until
from tests.e2e.service import ROOT, Json, Service, a_turn, serving
from tests.e2e.test_gateway_conformance import NODES

NODE = ROOT / "tests" / "node"
VALIDATE = ROOT / ".venv-peers" / "bin" / "ag-ui-validate"

pytestmark = [
    pytest.mark.requirement("X4"),
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not (NODES and VALIDATE.exists() and (NODE / "node_modules" / "@ag-ui").exists()),
        reason="needs `make node peers`",
    ),
]

LOOK, NOTE, HELD = "mcp__watched__look", "mcp__watched__note", "mcp__watched__held_look"
STATE = "update_state"
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("ag-ui") / "home") as running:
        running.watched_server("watched", trusted=True)
        notes = a_turn("May I?", (NOTE, {"text": "x"}), (LOOK, {"text": "y"})), a_turn("Done with {{ user }}.")
        policies = {NOTE: {"decision": "require_approval"}}
        running.agent("guide", running.script("guide", *notes), mcp_servers=["watched"], tool_policies=policies)
        asks = running.script("asks", a_turn("", ("weather", {"city": "Lisbon"})), a_turn("It is {{ results.last }}."))
        running.agent("asks", asks)
        running.agent("careful", asks, tool_policies={"weather": {"decision": "require_approval"}})
        adds = [{"op": "add", "path": "/items/-", "value": "tea"}, {"op": "replace", "path": "/count", "value": 1}]
        wrong = [{"op": "test", "path": "/count", "value": 9}]
        turns = a_turn("Adding.", (STATE, {"patch": adds}), (STATE, {"patch": wrong})), a_turn("{{ results.last }}")
        moves = a_turn("", ("weather", {"city": "Lisbon"})), a_turn("", (STATE, {"patch": adds[:1]})), a_turn("Done.")
        running.agent("moves", running.script("moves", *moves))
        running.agent("shops", running.script("shops", *turns))
        running.agent(
            "asks first", running.script("asks-first", *turns), tool_policies={STATE: {"decision": "require_approval"}}
        )
        running.agent("broken", running.script("broken", a_turn("{{ results.last }}")))
        yield running


def asked(service: Service, agent: str, messages: Sequence[Json], *, path: str = "", **more: object) -> list[Json]:
    """The events of one stream, which are valid."""
    body = {"threadId": "t1", "runId": "r1", "messages": list(messages), "tools": [], "context": [], **more}
    response = httpx.post(
        f"{service.url}/ag-ui/v1/{agent}{path}", json=body, headers=service.headers, timeout=60, trust_env=False
    )
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    events = [json.loads(frame.removeprefix("data: ")) for frame in response.text.strip().split("\n\n")]
    assert_valid(events)
    return events


def assert_valid(events: Sequence[Json]) -> None:
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    checked = subprocess.run(
        [NODES[-1], NODE / "ag_ui_events.mjs"], input=lines, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(checked.stdout) == {"events": len(events), "wrong": []}
    validated = subprocess.run(
        [VALIDATE, "-", "--max-warnings", "0"], input=lines, capture_output=True, text=True, timeout=60, check=False
    )
    assert validated.returncode == 0, validated.stdout


def kinds(events: Sequence[Json]) -> list[str]:
    return [event["type"] for event in events]


def user(text: str) -> Json:
    return {"id": "m1", "role": "user", "content": text}


def test_an_approval_is_an_interrupt_and_its_answer_continues_the_run(service: Service) -> None:
    state, message = {"theme": "dark"}, user("note it")
    events = asked(service, "guide", [message], threadId="a", state=state)
    assert kinds(events)[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "TEXT_MESSAGE_START"]
    assert events[1]["snapshot"] == state
    [interrupt] = events[-1]["outcome"]["interrupts"]
    assert interrupt["toolCallId"] in [event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    rest = asked(service, "guide", [message], threadId="a", runId="r2", resume=resume)
    results = {event["content"] for event in rest if event["type"] == "TOOL_CALL_RESULT"}
    assert results == {"note says x", "look says y"}
    assert rest[-1]["outcome"] == {"type": "success"}
    whole = asked(service, "guide", [], path="/connect", threadId="a", runId="r3")
    assert whole[1]["snapshot"] == state
    assert [message["content"] for message in whole[2]["messages"]] == ["note it"]
    repeated = ["TOOL_CALL_START", "TOOL_CALL_END"]  # of calls whose results come in a later stream
    assert kinds(whole)[3:] == [*kinds(events)[2:-1], *(kind for kind in kinds(rest)[2:] if kind not in repeated)]
    denied = asked(service, "guide", [message], threadId="b")
    resume = [{"interruptId": denied[-1]["outcome"]["interrupts"][0]["id"], "status": "cancelled"}]
    rest = asked(service, "guide", [message], threadId="b", runId="r2", resume=resume)
    assert [event["metadata"] for event in rest if "failed" in event.get("metadata", {})] == [{"failed": True}]


def test_the_clients_tools_are_pending_and_their_results_continue_the_run(service: Service) -> None:
    tools = [{"name": "weather", "description": "The weather.", "parameters": CITY}]
    events = asked(service, "asks", [user("weather?")], threadId="c", tools=tools)
    [call_id] = events[-1]["outcome"]["pendingToolCallIds"]
    result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "sunny"}
    rest = asked(service, "asks", [user("weather?"), result], threadId="c", runId="r2", tools=tools)
    assert kinds(rest) == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert rest[2]["delta"] == "It is sunny."


def test_a_tool_of_the_client_is_approved_then_settled_by_the_client(service: Service) -> None:
    tools = [{"name": "weather", "description": "The weather.", "parameters": CITY}]
    events = asked(service, "careful", [user("weather?")], threadId="e", tools=tools)
    [interrupt] = events[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    for _ in range(2):  # the answer twice settles nothing
        approved = asked(service, "careful", [user("weather?")], threadId="e", runId="r2", tools=tools, resume=resume)
        assert approved[-1]["outcome"] == {"type": "success", "pendingToolCallIds": [interrupt["toolCallId"]]}
    result = {"id": "m2", "role": "tool", "toolCallId": interrupt["toolCallId"], "content": "sunny"}
    rest = asked(service, "careful", [user("weather?"), result], threadId="e", runId="r3", tools=tools)
    assert [event["delta"] for event in rest if event["type"] == "TEXT_MESSAGE_CONTENT"] == ["It is sunny."]


def test_an_agent_changes_the_state_and_a_client_without_one_has_it_as_it_was_left(service: Service) -> None:
    events = asked(service, "shops", [user("tea")], threadId="s", state={"items": [], "count": 0})
    assert kinds(events).count("STATE_DELTA") == 1
    [changed] = [event["delta"] for event in events if event["type"] == "STATE_DELTA"]
    assert [operation["op"] for operation in changed] == ["add", "replace"]
    assert [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"][-1].startswith(
        "The state was not"
    )
    after = {"items": ["tea"], "count": 1}
    again = asked(service, "shops", [], path="/connect", threadId="s", runId="r2")
    assert ("STATE_DELTA" in kinds(again), again[1]["snapshot"]) == (False, after)
    more = {**user("more"), "id": "m2"}
    inherited = asked(service, "shops", [more], threadId="s", runId="r3", state={})
    assert inherited[1] == {"type": "STATE_SNAPSHOT", "snapshot": after}
    assert "STATE_DELTA" in kinds(inherited)
    replaced = asked(service, "shops", [{**more, "id": "m3"}], threadId="s", runId="r4", state={"other": 1})
    assert replaced[1]["snapshot"] == {"other": 1}


def test_a_state_that_comes_with_results_is_the_one_that_the_agent_changes(service: Service) -> None:
    tools = [{"name": "weather", "description": "The weather.", "parameters": CITY}]
    changed = {"items": ["mine"]}
    events = asked(service, "moves", [user("go")], threadId="s3", state={"items": []}, tools=tools)
    [call_id] = events[-1]["outcome"]["pendingToolCallIds"]
    result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "sunny"}
    rest = asked(service, "moves", [user("go"), result], threadId="s3", runId="r2", state=changed, tools=tools)
    assert (rest[1]["snapshot"], kinds(rest).count("STATE_DELTA")) == (changed, 1)
    whole = asked(service, "moves", [], path="/connect", threadId="s3", runId="r3")
    assert whole[1]["snapshot"] == {"items": ["mine", "tea"]}
    late = {"items": ["again"]}
    same = asked(service, "moves", [user("go"), result], threadId="s3", runId="r4", state=late, tools=tools)
    assert (same[1]["snapshot"], kinds(same)) == (changed, kinds(rest))


def test_a_change_of_the_state_may_need_an_approval(service: Service) -> None:
    events = asked(service, "asks%20first", [user("tea")], threadId="s2", state={"items": [], "count": 0})
    assert "STATE_DELTA" not in kinds(events)
    first, second = events[-1]["outcome"]["interrupts"]
    resume = [
        {"interruptId": first["id"], "status": "resolved", "payload": {"approved": True}},
        {"interruptId": second["id"], "status": "cancelled"},
    ]
    rest = asked(service, "asks%20first", [user("tea")], threadId="s2", runId="r2", resume=resume)
    assert rest[1]["snapshot"] == {"items": [], "count": 0}
    assert kinds(rest).count("STATE_DELTA") == 1


def test_a_state_that_comes_with_a_part_of_the_answers_stays_with_the_front_end_until_the_last(
    service: Service,
) -> None:
    first = {"items": [], "count": 0}
    events = asked(service, "asks%20first", [user("tea")], threadId="s5", state=first)
    changed, last = {"items": ["mine"], "count": 0}, {"items": ["mine", "tea"], "count": 1}
    begun, rest = [], events
    for number, interrupt in enumerate(events[-1]["outcome"]["interrupts"]):
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": number == 0}}
        about: Json = {"threadId": "s5", "runId": f"r{number + 2}", "state": changed, "resume": [answer]}
        rest = asked(service, "asks%20first", [user("tea")], **about)
        begun.append(rest[1]["snapshot"])
    assert (begun, kinds(rest).count("STATE_DELTA")) == ([changed, changed], 1)
    whole = asked(service, "asks%20first", [], path="/connect", threadId="s5", runId="r4", state=first)
    assert whole[1]["snapshot"] == last


def test_the_protocols_own_client_has_the_state_after_a_kill_and_every_patch_once(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        adds = [{"op": "add", "path": "/items/-", "value": "tea"}]
        held = a_turn("Looking.", (STATE, {"patch": adds}), (HELD, {"text": "x", "gate": str(gate)}))
        turns = held, a_turn("", (STATE, {"patch": adds})), a_turn("Done.")
        service.agent("guide", service.script("guide", *turns), mcp_servers=["watched"])
        (tmp_path / "state.mjs").write_bytes((NODE / "ag_ui_state.mjs").read_bytes())
        (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
        program = subprocess.Popen(
            [NODES[-1], tmp_path / "state.mjs"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": service.key},
        )
        until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
        service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home, DRAGOMAN_PORT=str(urlsplit(service.url).port)), program:
        told, _ = program.communicate(timeout=120)
    assert program.returncode == 0
    first, last = map(json.loads, told.splitlines())
    assert first in ({"items": []}, {"items": ["tea"]})
    assert last == {"items": ["tea", "tea"]}


def test_every_patch_that_applies_is_applied_by_the_protocols_client_the_same() -> None:
    cases: list[tuple[JsonValue, JsonObject, JsonValue]] = []
    chance = random.Random(7)
    paths = ["", "/a", "/a/0", "/a/1", "/a/-", "/b", "/b/c", "/b/~1", "/b/~0", "/n", "/", "/a/01", "/x/y"]
    while len(cases) < 400:
        document: JsonValue = {"a": [1, {"c": None}], "b": {"c": [True], "/": 1, "~": 2}, "n": 0, "": "empty"}
        values: list[JsonValue] = [None, 0, True, "x", [], {"c": [1]}, [1, {"c": None}]]
        operation: JsonObject = {
            "op": chance.choice(["add", "remove", "replace", "move", "copy", "test"]),
            "path": chance.choice(paths),
            "from": chance.choice(paths),
            "value": chance.choice(values),
        }
        with contextlib.suppress(PatchFault):
            cases.append((document, operation, patched(document, [operation], max_bytes=10_000)))
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    checked = subprocess.run(
        [NODES[-1], NODE / "json_patches.mjs"], input=lines, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(checked.stdout) == {"patches": len(cases), "other": []}


def test_a_run_that_failed_is_an_error(service: Service) -> None:
    events = asked(service, "broken", [user("go")], threadId="d")
    assert kinds(events) == ["RUN_STARTED", "RUN_ERROR"]


@pytest.mark.requirement("U3")
def test_the_example_lets_its_user_decide_and_prints_the_conversation(service: Service, tmp_path: Path) -> None:
    with example(tmp_path, service, "note it") as program:
        told, _ = program.communicate("yes\n", timeout=60)
    assert program.returncode == 0
    said = [
        "user: note it",
        "assistant: May I?",
        "tool: note says x",
        "tool: look says y",
        "assistant: Done with note it.",
    ]
    assert told.endswith("yes or no? " + "".join(f"{line}\n" for line in said))


def test_the_example_reads_the_run_again_after_a_kill(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", (HELD, {"text": "x", "gate": str(gate)}))
        service.agent("guide", service.script("guide", held, a_turn("Found.")), mcp_servers=["watched"])
        program = example(tmp_path, service, "look")
        until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
        service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home, DRAGOMAN_PORT=str(urlsplit(service.url).port)), program:
        told, _ = program.communicate(timeout=120)
    assert program.returncode == 0
    assert told.splitlines() == [
        "user: look",
        "assistant: Looking.",
        "tool: held_look says x",
        "assistant: Found.",
    ]


def example(folder: Path, service: Service, question: str) -> "subprocess.Popen[str]":
    (folder / "ag_ui.mjs").write_bytes((ROOT / "examples" / "ag_ui.mjs").read_bytes())
    (folder / "node_modules").symlink_to(NODE / "node_modules")
    return subprocess.Popen(
        [NODES[-1], folder / "ag_ui.mjs", question],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": service.key},
    )
