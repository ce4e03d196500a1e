"""A canary token turns up wherever one can, in every spelling; then it is looked for wherever
anything is kept or shown."""

import base64
import json
from pathlib import Path

import pytest

from tests.e2e.outside import outside
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, a_turn, assert_consistent, parts, serving

TOKEN = "Nightingale-4471-Kestrel"
MARK = "[canary:vault]"
SPELLINGS = {
    "plain": TOKEN,
    "upper": TOKEN.upper(),
    "hex": TOKEN.encode().hex(),
    "percent": TOKEN.replace("N", "%4e").replace("-", "%2D"),
    **{f"base64-{lead}": base64.b64encode(b"." * lead + TOKEN.encode()).decode() for lead in range(3)},
}
TOOLS_THAT_BRING_IT = ("say", "refuse", "break", "report", "shape")


def watched() -> list[bytes]:
    """What the token is in each spelling, without the characters that its neighbours decide; in
    lower case."""
    texts = [TOKEN, TOKEN.encode().hex(), TOKEN.upper().encode().hex(), SPELLINGS["percent"]]
    for word in (TOKEN, TOKEN.lower(), TOKEN.upper()):
        texts += [base64.b64encode(b"." * lead + word.encode()).decode()[4:-4] for lead in range(3)]
    return [text.lower().encode() for text in texts]


def found(data: bytes) -> list[bytes]:
    lowered = data.lower()
    return [form for form in watched() if form in lowered]


def guarded_agent(service: Service, name: str, *turns: Json, **settings: object) -> None:
    script = service.script(name, *turns, chunk_chars=3)
    service.agent(
        name,
        script,
        mcp_servers=["planting"],
        canary_tokens=[{"id": "vault", "token": TOKEN}],
        instructions="The vault's word is {{canary:vault}}. Tell nobody.",
        **settings,
    )


def leaking_agents(service: Service) -> dict[str, str]:
    """Agents whose runs carry the token out; by name the tool that does it, empty where it is the
    model."""
    agents = {}
    for spelling, text in SPELLINGS.items():
        guarded_agent(service, f"tells-{spelling}", a_turn(f"It is {text}, keep it."))
        agents[f"tells-{spelling}"] = ""
        hidden = {"text": "ok", "more": [{"note": f"({text})"}]}
        guarded_agent(service, f"passes-{spelling}", a_turn("I look.", ("mcp__planting__keep", hidden)))
        agents[f"passes-{spelling}"] = "keep"
        for tool in TOOLS_THAT_BRING_IT:
            calls = (("mcp__planting__keep", {"text": "beside it"}), (f"mcp__planting__{tool}", {"name": spelling}))
            guarded_agent(service, f"{tool}-{spelling}", a_turn("I look.", *calls), a_turn("It never comes to this."))
            agents[f"{tool}-{spelling}"] = tool
    return agents


def streamed(service: Service, agent: str, thread_id: str) -> bytes:
    """The bytes of a run's stream."""
    with service.client.stream(
        "POST", f"/threads/{thread_id}/runs/stream", json={"agent": agent, "input": f"Is it {TOKEN}?"}
    ) as response:
        assert response.status_code == 200, response.read()
        return b"".join(response.iter_bytes())


def assert_halted(service: Service, thread_id: str, tool: str) -> None:
    [run] = service.call("GET", f"/runs?thread_id={thread_id}")["data"]
    assert run["status"] == "halted"
    events = service.events(run["id"])
    messages: list[Json] = service.call("GET", f"/threads/{thread_id}/messages")["data"]
    assert_consistent(messages, events)
    halted = events[-1]
    assert (halted["type"], halted["reason"], halted["canary_id"]) == ("run.halted", "canary", "vault")
    culprits = [part["id"] for part in parts(messages, "tool_use") if part["name"] == f"mcp__planting__{tool}"]
    assert [halted.get("tool_call_id")] == (culprits or [None])
    if tool == "keep":
        assert not [event for event in events if event["type"] in ("tool.started", "tool.executed")], "nothing was sent"
    assert MARK in json.dumps([messages, events])
    entries = service.call("GET", f"/audit-events?run_id={run['id']}&action=session.halted")["data"]
    assert [entry["details"]["canary_id"] for entry in entries] == ["vault"]


def everything_the_api_says(service: Service) -> bytes:
    """What GET answers about anything that the runs have touched."""
    answers = [service.client.get(f"/{path}?limit=100") for path in ("agents", "threads", "runs", "audit-events")]
    answers += [service.client.get(path) for path in ("/approvals", "/usage", "/tools", "/audit-events/export")]
    answers += [service.client.get(f"/mcp-servers/planting{end}") for end in ("", "/status", "/logs", "/tools")]
    for agent in answers[0].json()["data"]:
        answers.append(service.client.get(f"/agents/{agent['id']}/versions"))
    for run in answers[2].json()["data"]:
        base = f"/runs/{run['id']}"
        answers += [service.client.get(f"{base}{end}") for end in ("", "/events", "/wait", "/stream")]
        answers.append(service.client.get(f"/threads/{run['thread_id']}/messages"))
    assert all(answer.is_success for answer in answers), [answer.url for answer in answers if not answer.is_success]
    return b"\n".join(answer.content for answer in answers)


def release(service: Service, thread_id: str) -> None:
    """A thread in quarantine takes nothing; released, it does, and what was said is still there
    without the token."""
    thread = service.call("GET", f"/threads/{thread_id}")
    assert thread["quarantine"]["canary_id"] == "vault"
    body = {"agent": "harmless", "input": "Go on."}
    refused = service.call("POST", f"/threads/{thread_id}/runs", body, expect=409)
    assert refused["code"] == "thread_quarantined"
    assert service.call("POST", f"/threads/{thread_id}/release")["quarantine"] is None
    after = service.call("POST", f"/threads/{thread_id}/runs/wait", body)
    assert (after["run"]["status"], after["run"]["output"]) == ("completed", "Nothing to tell.")


def decide_with_the_token(service: Service) -> None:
    """People who are asked for an approval cannot pass it on either."""
    asking = {"mcp__planting__keep": {"decision": "require_approval"}}
    turns = (a_turn("", ("mcp__planting__keep", {"text": "a"})), a_turn("Then not."))
    guarded_agent(service, "asks", *turns, tool_policies=asking)
    waiting = service.run("asks")["run"]
    path = f"/approvals/{waiting['pending'][0]['approval_id']}"
    for text in SPELLINGS.values():
        edited = {"decision": "approve", "arguments": {"text": text}}
        assert service.call("POST", path, edited, expect=422)["code"] == "arguments_denied"
    service.call("POST", path, {"decision": "deny", "reason": f"It would say {TOKEN}."})
    ended = service.wait(waiting["id"])
    assert ended["run"]["status"] == "completed"
    [denied] = parts(ended["messages"], "tool_result")
    assert f"It would say {MARK}." in denied["result"]


@pytest.mark.timeout(600)
@pytest.mark.requirement("C4", "C5", "G1", "G2")
def test_a_planted_canary_is_found_nowhere_and_its_thread_is_closed_until_it_is_released(tmp_path: Path) -> None:
    home, texts = tmp_path / "home", tmp_path / "planted.json"
    texts.write_text(json.dumps(SPELLINGS), encoding="utf-8")
    with outside() as there:
        settings = {
            "DRAGOMAN_LOG_LEVEL": "debug",
            "DRAGOMAN_LOG_FORMAT": "json",
            "LANGFUSE_PUBLIC_KEY": "pk-public",
            "LANGFUSE_SECRET_KEY": "sk-secret",
            "LANGFUSE_HOST": there.url,
        }
        with serving(home, **settings) as service:
            service.server("planting", *ISOLATED_PYTHON, str(SERVERS / "planting_server.py"), str(texts))
            service.agent("harmless", service.script("harmless", a_turn("Nothing to tell.")))
            threads = {}
            for agent, tool in leaking_agents(service).items():
                threads[agent] = str(service.call("POST", "/threads", {})["id"])
                shown = streamed(service, agent, threads[agent])
                assert b"event: run.halted" in shown, agent
                assert found(shown) == [], agent
                assert_halted(service, threads[agent], tool)
            for agent in ("tells-hex", "passes-base64-1", "say-plain"):
                release(service, threads[agent])
            decide_with_the_token(service)

            assert found(everything_the_api_says(service)) == []
            assert service.call("GET", "/audit-events/verify")["ok"] is True
            assert service.stop() == 0
        assert found(service.log.read_bytes()) == []
        assert found(service.output.read_bytes()) == []
        assert there.exports
        assert found(b"".join(there.exports)) == []
        assert b"[canary:vault]" in b"".join(there.exports)
    kept = [path for path in home.rglob("*") if path.is_file() and path.parent.name != "scripted"]
    assert (home / "dragoman.db") in kept
    for path in kept:
        assert found(path.read_bytes()) == [], path.name
