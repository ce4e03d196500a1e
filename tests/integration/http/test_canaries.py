"""Canary tokens over HTTP: written, never read back; threads in quarantine, and their release."""

from dataclasses import replace

import pytest

from domain.identity.role import Role
from domain.ids import RunId, ThreadId
from domain.runs.run import RunStatus
from domain.threads.thread import Quarantine
from tests.builders import START
from tests.composition import MODEL
from tests.contract.run_steps import claim, finish_step
from tests.integration.http.service import OTHER_ADMIN, Act, Service, paths_of, problem_of, token_of

TOKEN = "Nightingale-4471"
OTHER = "Bluethroat-0815"

pytestmark = pytest.mark.requirement("C4")


async def an_agent(service: Service, *tokens: object, instructions: str = "") -> dict[str, object]:
    body = {"name": "guard", "model": MODEL, "canary_tokens": list(tokens), "instructions": instructions}
    created = await service.call("POST", "/v1/agents", json=body)
    assert created.status_code == 201, created.text
    agent: dict[str, object] = created.json()
    return agent


async def secrets_of(service: Service) -> dict[str, str]:
    """The tokens of the agent as they are stored, by id."""
    (versions,) = service.state.agents.values()
    return {token.id: token.secret for token in versions[-1].config.canary_tokens}


async def test_tokens_are_read_back_as_ids_only_and_stand_as_placeholders_in_the_instructions(service: Service) -> None:
    agent = await an_agent(
        service, TOKEN, {"id": "b", "token": OTHER}, {"id": "own", "per_run": True}, instructions=f"Guard {OTHER}."
    )
    tokens = agent["canary_tokens"]
    assert isinstance(tokens, list)
    assert tokens[0]["id"].startswith("can_")
    assert tokens[1:] == [{"id": "b", "per_run": False}, {"id": "own", "per_run": True}]
    assert agent["instructions"] == "Guard {{canary:b}}."
    for path in ("/v1/agents", "/v1/agents/guard", "/v1/agents/guard/versions", "/v1/audit-events"):
        answer = (await service.call("GET", path)).text
        assert TOKEN not in answer
        assert OTHER not in answer


async def test_a_list_that_was_read_can_be_written_back_without_losing_a_token(service: Service) -> None:
    agent = await an_agent(service, TOKEN, {"id": "own", "per_run": True})
    before = await secrets_of(service)
    same = await service.call("PATCH", "/v1/agents/guard", json={"canary_tokens": agent["canary_tokens"]})
    assert (same.json()["version"], await secrets_of(service)) == (1, before)
    again = await service.call(
        "PATCH", "/v1/agents/guard", json={"canary_tokens": [TOKEN, {"id": "own", "per_run": True}]}
    )
    assert again.json()["version"] == 1
    more = await service.call(
        "PATCH",
        "/v1/agents/guard",
        json={"canary_tokens": [*same.json()["canary_tokens"], {"id": "b", "token": OTHER}]},
    )
    assert more.json()["version"] == 2
    assert await secrets_of(service) == {**before, "b": OTHER}
    none = await service.call("PATCH", "/v1/agents/guard", json={"canary_tokens": []})
    assert none.json()["canary_tokens"] == []


@pytest.mark.parametrize(
    ("tokens", "paths"),
    [
        (["short"], ["canary_tokens.0"]),
        ([""], ["canary_tokens.0"]),
        (["\0"], ["canary_tokens.0"]),
        (["\0" * 20], ["canary_tokens.0"]),
        ([" " * 20], ["canary_tokens.0"]),
        (["x" * 257], ["canary_tokens.0"]),
        ([f"{TOKEN}\n"], ["canary_tokens.0"]),
        ([TOKEN, TOKEN.upper()], ["canary_tokens.1"]),
        ([{"id": "a", "token": TOKEN}, {"id": "a", "token": OTHER}], ["canary_tokens.1.id"]),
        ([{"id": f"it-is-{TOKEN}", "token": TOKEN}], ["canary_tokens.0.id"]),
        ([{"id": "two words", "token": TOKEN}], ["canary_tokens.0.id"]),
        ([{"id": "unknown"}], ["canary_tokens.0.token"]),
        ([{"id": "own", "token": TOKEN, "per_run": True}], ["canary_tokens.0.token"]),
        ([TOKEN + str(number) for number in range(33)], ["canary_tokens"]),
    ],
)
async def test_tokens_that_cannot_be_watched_for_are_refused_without_being_repeated(
    service: Service, tokens: list[object], paths: list[str]
) -> None:
    refused = await service.call("POST", "/v1/agents", json={"name": "guard", "model": MODEL, "canary_tokens": tokens})
    assert paths_of(problem_of(refused, 422, "agent_invalid")) == paths
    assert TOKEN.casefold() not in refused.text.casefold().replace(f"it-is-{TOKEN}".casefold(), "")


@pytest.mark.parametrize("token", ["", "\0", "x"])
async def test_a_token_too_short_to_watch_for_is_refused_of_an_agent_that_is_there_too(
    service: Service, token: str
) -> None:
    await an_agent(service, TOKEN)
    refused = await service.call("PATCH", "/v1/agents/guard", json={"canary_tokens": [TOKEN, token]})
    assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["canary_tokens.1"]


async def test_malformed_entries_are_refused_without_being_repeated(service: Service) -> None:
    body = {"name": "guard", "model": MODEL, "canary_tokens": [{"id": "a", "tokne": TOKEN}, 7]}
    refused = await service.call("POST", "/v1/agents", json=body)
    assert "canary_tokens.0.tokne" in paths_of(problem_of(refused, 422, "body_invalid"))
    assert TOKEN not in refused.text


async def test_instructions_name_only_tokens_that_are_there_and_hide_none_in_another_spelling(service: Service) -> None:
    for instructions in ("Guard {{canary:nobody}}.", f"Guard {TOKEN.encode().hex()}."):
        body = {"name": "guard", "model": MODEL, "canary_tokens": [TOKEN], "instructions": instructions}
        refused = await service.call("POST", "/v1/agents", json=body)
        assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["instructions"]


async def test_an_input_that_holds_a_token_is_stored_without_it(service: Service) -> None:
    await an_agent(service, {"id": "vault", "token": TOKEN})
    started = await service.call("POST", "/v1/runs", json={"agent": "guard", "input": f"Is it {TOKEN.lower()}?"})
    assert started.json()["input"] == [{"type": "text", "text": "Is it [canary:vault]?"}]


async def a_halted_run(service: Service) -> dict[str, str]:
    """A run that was halted on its thread, and a run queued behind it."""
    await an_agent(service, {"id": "vault", "token": TOKEN})
    service.worker.act = Act.REST
    halted = (await service.call("POST", "/v1/runs", json={"agent": "guard", "input": "Go"})).json()
    thread_id = halted["thread_id"]
    waiting = await service.call("POST", f"/v1/threads/{thread_id}/runs", json={"agent": "guard", "input": "And?"})
    claimed = await claim(service.stores, RunId(halted["id"]))
    quarantine = Quarantine(run_id=RunId(halted["id"]), canary_id="vault", at=START)
    step = replace(finish_step(claimed.run, RunStatus.HALTED), quarantine=quarantine)
    await service.stores.journal.commit(claimed.lease, step)
    service.worker.act = Act.FINISH
    service.worker.submitted.clear()
    return {"thread_id": ThreadId(thread_id), "halted": halted["id"], "waiting": waiting.json()["id"]}


async def test_a_thread_in_quarantine_says_so_and_answers_409_until_it_is_released(service: Service) -> None:
    ids = await a_halted_run(service)
    path = f"/v1/threads/{ids['thread_id']}"
    shown = (await service.call("GET", path)).json()["quarantine"]
    assert (shown["run_id"], shown["canary_id"]) == (ids["halted"], "vault")
    for method, where, body in (
        ("POST", "/runs", {"agent": "guard", "input": "Hi"}),
        ("POST", "/runs/wait", {"agent": "guard", "input": "Hi"}),
        ("POST", "/runs/stream", {"agent": "guard", "input": "Hi"}),
        ("POST", "/messages", {"role": "user", "content": "Hi"}),
        ("DELETE", "", None),
    ):
        refused = await service.call(method, path + where, json=body)
        assert problem_of(refused, 409, "thread_quarantined")["run_id"] == ids["halted"]

    released = await service.call("POST", f"{path}/release", token=token_of(Role.OPERATOR))
    assert (released.status_code, released.json()["quarantine"]) == (200, None)
    assert service.worker.submitted == [ids["waiting"]]
    assert (await service.call("GET", f"/v1/runs/{ids['waiting']}")).json()["status"] == "completed"
    problem_of(await service.call("POST", f"{path}/release"), 409, "thread_not_quarantined")
    entries = (await service.call("GET", "/v1/audit-events")).json()["data"]
    (entry,) = [entry for entry in entries if entry["action"] == "thread.released"]
    assert (entry["actor"], entry["resource"]) == ("key_operator", ids["thread_id"])
    assert entry["details"] == {"canary_id": "vault", "halted_run_id": ids["halted"]}


@pytest.mark.requirement("C6")
async def test_releasing_needs_an_operator_of_the_threads_own_organization(service: Service) -> None:
    ids = await a_halted_run(service)
    path = f"/v1/threads/{ids['thread_id']}/release"
    for role in (Role.VIEWER, Role.RUNNER):
        assert (await service.call("POST", path, token=token_of(role))).status_code == 403
    problem_of(await service.call("POST", path, token=OTHER_ADMIN), 404, "thread_not_found")
    problem_of(await service.call("POST", "/v1/threads/thr_none/release"), 404, "thread_not_found")
