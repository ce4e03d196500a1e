"""The console's pages for workflows: what they save, start, answer and refuse."""

import asyncio
import html
import json
import re
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from unittest.mock import create_autospec

import pytest

from application.identity.caller_teams import CallerTeams
from application.identity.impersonations import Impersonations
from application.identity.key_validity import KeyValidity
from application.identity.token_cache import TokenCache
from application.workflows.run_queries import WatchWorkflowRun
from domain.identity.role import Role
from domain.ids import WorkerId, WorkflowRunId
from domain.json_value import JsonValue
from domain.workflows.execution import NodeRun
from domain.workflows.run import WorkflowEventType
from tests.builders import START
from tests.composition import MODEL, the_settings
from tests.doubles.surroundings import StepClock
from tests.integration.http.service import OTHER_ADMIN, Act, Conversation, Harness, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_servers import faults
from tests.integration.http.test_workflow_runs import ASKING, waiting_for_agent
from tests.unit.application.actors import a_principal

TEXT = """name: answers
nodes:
  - {id: start, kind: entrypoint, config: {schema: {type: object}}}
  - {id: answer, kind: agent, config: {agent: guide}}
  - {id: files, kind: mcp_server, mode: tool, config: {server: files}}
edges:
  - {source: start, target: answer}
  - {source: files, target: answer, target_handle: tools}
"""


@pytest.fixture
async def stocked(service: Service) -> Service:
    """A service with what workflows name."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "x"})
    return service


def data_of(page: str, name: str) -> Any:
    """What the page says to the script of the canvas."""
    (found,) = re.findall(f'data-{name}="([^"]*)"', page)
    return json.loads(html.unescape(found))


async def saved(service: Service, text: str = TEXT) -> str:
    """The path of a new workflow's page."""
    admin = await signed_in(service)
    answer = await browse(service, "POST", "/console/workflows/new", headers=admin, data={"definition": text})
    assert "hx-redirect" in answer.headers, answer.text
    return answer.headers["hx-redirect"]


@pytest.mark.requirement("F1")
async def test_a_workflow_is_written_checked_drawn_and_saved_as_versions(stocked: Service) -> None:
    admin = await signed_in(stocked)
    checked = await browse(stocked, "POST", "/console/workflows/check", headers=admin, data={"definition": TEXT})
    assert checked.json() == {
        "errors": [],
        "warnings": [],
        "places": {"files": [0.0, 0.0], "start": [0.0, 1.0], "answer": [1.0, 0.5]},
    }
    assert (await stocked.call("GET", "/v1/workflows")).json()["data"] == []
    path = await saved(stocked)
    page = (await browse(stocked, "GET", path, headers=admin)).text
    graph = data_of(page, "graph")
    assert [node["title"] for node in graph["nodes"]] == ["Start", "Agent", "MCP server"]
    assert [edge["target_handle"] for edge in graph["edges"]] == ["input", "tools"]
    assert graph["places"].keys() == {"start", "answer", "files"}
    assert "as its tool" in page
    form = await browse(stocked, "GET", f"{path}/edit", headers=admin)
    assert "Save as version 2" in form.text
    other = TEXT.replace("answer,", "reply,")
    changed = {"definition": other.replace("target: answer", "target: reply"), "version": "1"}
    answer = await browse(stocked, "POST", f"{path}/edit", headers=admin, data=changed)
    assert answer.headers["hx-redirect"] == path
    assert "reply" in (await browse(stocked, "GET", path, headers=admin)).text
    first = (await browse(stocked, "GET", f"{path}?version=1", headers=admin)).text
    assert "The newest is 2." in first
    assert ">Start the run<" not in first
    assert (await browse(stocked, "GET", f"{path}?version=9", headers=admin)).status_code == 404
    stale = await browse(stocked, "POST", f"{path}/edit", headers=admin, data=changed | {"definition": TEXT})
    assert stale.status_code == 412
    deleted = await browse(stocked, "POST", f"{path}/delete", headers=admin)
    assert deleted.headers["hx-redirect"] == "/console/workflows"
    assert (await browse(stocked, "GET", path, headers=admin)).status_code == 404


@pytest.mark.requirement("U6")
async def test_versions_are_compared_and_an_older_one_is_restored_as_the_next(stocked: Service) -> None:
    admin = await signed_in(stocked)
    path = await saved(stocked)
    other = TEXT.replace("{schema: {type: object}}", "{schema: {type: string}}")
    await browse(stocked, "POST", f"{path}/edit", headers=admin, data={"definition": other, "version": "1"})
    changed = (await browse(stocked, "GET", f"{path}/changes?version=2", headers=admin)).text
    start = "- {id: start, kind: entrypoint, config: {schema: {type: %s}}}"
    found = re.findall(r"<(ins|del)>.*?</span>\s*(.*?)</", changed)
    assert found == [("del", start % "object"), ("ins", start % "string")]
    back = (await browse(stocked, "GET", f"{path}/changes?version=1&since=2", headers=admin)).text
    found = re.findall(r"<(ins|del)>.*?</span>\s*(.*?)</", back)
    assert found == [("del", start % "string"), ("ins", start % "object")]
    assert "first version" in (await browse(stocked, "GET", f"{path}/changes?version=1", headers=admin)).text
    assert (await browse(stocked, "GET", f"{path}/changes?version=9", headers=admin)).status_code == 404

    restore = f"{path}/restore?version=1"
    assert (await browse(stocked, "POST", f"{restore}&newest=1", headers=admin)).status_code == 412
    operator = await signed_in(stocked, token_of(Role.OPERATOR))
    assert (await browse(stocked, "POST", f"{restore}&newest=2", headers=operator)).status_code == 403
    assert (await browse(stocked, "POST", f"{path}/restore?version=9&newest=2", headers=admin)).status_code == 404
    restored = await browse(stocked, "POST", f"{restore}&newest=2", headers=admin)
    assert restored.headers["hx-redirect"] == path
    newest = (await stocked.call("GET", "/v1/workflows/answers")).json()
    assert (newest["version"], newest["nodes"][0]["config"]) == (3, {"schema": {"type": "object"}})


@pytest.mark.requirement("U6")
async def test_a_version_that_names_what_is_gone_is_not_restored(stocked: Service) -> None:
    admin = await signed_in(stocked)
    path = await saved(stocked)
    other = TEXT.replace("server: files", "server: others")
    await stocked.call("POST", "/v1/mcp-servers", json={"slug": "others", "kind": "custom", "command": "x"})
    await browse(stocked, "POST", f"{path}/edit", headers=admin, data={"definition": other, "version": "1"})
    await stocked.call("DELETE", "/v1/mcp-servers/files")
    refused = await browse(stocked, "POST", f"{path}/restore?version=1&newest=2", headers=admin)
    assert refused.status_code == 422
    assert "There is no MCP server" in html.unescape(refused.text)


async def test_runs_are_titled_by_their_input_or_their_workflow_though_it_is_deleted(stocked: Service) -> None:
    path = await saved(stocked)
    admin = await signed_in(stocked)
    for given in ("{}", '{"question": "How wide is the Danube?", "days": 3}'):
        await browse(stocked, "POST", f"{path}/runs", headers=admin, data={"input": given})
    await browse(stocked, "POST", f"{path}/delete", headers=admin)
    page = (await browse(stocked, "GET", "/console/workflows", headers=admin)).text
    titles = re.findall(
        r'<td class="title"><a href="(/console/workflows/runs/[^"]+)" title="wfr_[^"]+">([^<]+)</a>', page
    )
    assert [title for _, title in titles] == ["How wide is the Danube? · 3", "answers"]
    assert (
        "<h1>answers: How wide is the Danube? · 3</h1>"
        in (await browse(stocked, "GET", titles[0][0], headers=admin)).text
    )


@pytest.mark.requirement("F1")
async def test_everything_that_is_wrong_is_told_at_once_with_the_nodes(stocked: Service) -> None:
    admin = await signed_in(stocked)
    text = (
        TEXT.replace("guide", "nobody")
        .replace("server: files", "server: nowhere")
        .replace("target: answer}", "target: gone}")
    )
    for path in ("/console/workflows/check", "/console/workflows/new"):
        answer = await browse(stocked, "POST", path, headers=admin, data={"definition": text})
        is_refused = path.endswith("new")
        assert answer.status_code == (422 if is_refused else 200)
        assert answer.headers.get("hx-retarget") == ("#checked" if is_refused else None)
        for told in ("unknown_agent", "unknown_server", "unknown_node", "answer", "nodes.1.config.agent"):
            assert told in answer.text
    assert (await stocked.call("GET", "/v1/workflows")).json()["data"] == []


async def test_a_text_that_is_no_definition_is_refused_with_the_place(stocked: Service) -> None:
    admin = await signed_in(stocked)
    for text, told in (
        ("name: [", "line 1, column 8"),
        ('{"name": ', "line 1, column 10"),
        ("[]", "must be a JSON object"),
        ("name: x\nnodes: []\nmore: 1", "is not a known field"),
        ("name: &a x\nnodes: *a", "aliases are not allowed"),
        ("# " + "x" * 300_000, "longer than 256 KiB"),
        ('{"name": "\\ud800", "nodes": []}', "other than plain data"),
        ("", "must be a JSON object"),
    ):
        answer = await browse(stocked, "POST", "/console/workflows/check", headers=admin, data={"definition": text})
        assert told in answer.json()["unreadable"][0], text[:20]
        answer = await browse(stocked, "POST", "/console/workflows/new", headers=admin, data={"definition": text})
        assert answer.status_code == 422
        assert told in answer.text, text[:20]
    await saved(stocked)
    taken = await browse(stocked, "POST", "/console/workflows/new", headers=admin, data={"definition": TEXT})
    assert faults(taken) == ["name"]


@pytest.mark.requirement("F4")
async def test_a_run_is_started_with_an_input_that_fits_shown_and_cancelled(stocked: Service) -> None:
    path = await saved(stocked)
    runner = await signed_in(stocked, token_of(Role.RUNNER))
    for text in ("{", "[1]", "NaN", "[" * 100_000):
        answer = await browse(stocked, "POST", f"{path}/runs", headers=runner, data={"input": text})
        assert faults(answer) == ["input"]
    started = await browse(stocked, "POST", f"{path}/runs", headers=runner, data={"input": '{"topic": "<b>"}'})
    page = await browse(stocked, "GET", started.headers["hx-redirect"], headers=runner)
    assert {mark["status"] for mark in data_of(page.text, "marks").values()} == {"pending"}
    assert page.text.count(">pending<") == 3
    assert "&lt;b&gt;" in page.text
    assert started.headers["hx-redirect"] in (await browse(stocked, "GET", path, headers=runner)).text
    stopped = await browse(stocked, "POST", f"{started.headers['hx-redirect']}/cancel", headers=runner)
    assert 'class="status cancelled"' in stopped.text
    stream = await browse(stocked, "GET", f"{started.headers['hx-redirect']}/stream?after=1", headers=runner)
    assert "workflow.queued" not in stream.text
    assert '"status":"cancelled"' in stream.text


@pytest.mark.requirement("F4", "U6")
async def test_a_run_is_replayed_from_a_node_of_its_page(stocked: Service) -> None:
    path = await saved(stocked)
    admin, viewer = await signed_in(stocked), await signed_in(stocked, token_of(Role.VIEWER))
    run = (await browse(stocked, "POST", f"{path}/runs", headers=admin, data={"input": "{}"})).headers["hx-redirect"]
    assert ">Replay<" in (await browse(stocked, "GET", run, headers=admin)).text
    assert ">Replay<" not in (await browse(stocked, "GET", run, headers=viewer)).text
    again = await browse(stocked, "POST", f"{run}/replay", headers=admin, data={"node_id": "answer"})
    assert again.headers["hx-redirect"].startswith("/console/workflows/runs/wfr_")
    assert again.headers["hx-redirect"] != run
    refused = await browse(stocked, "POST", f"{run}/replay", headers=admin, data={"node_id": "files"})
    assert faults(refused) == ["node_id"]
    alone = {"node_id": "answer", "alone": "true"}
    assert (await browse(stocked, "POST", f"{run}/replay", headers=admin, data=alone)).status_code == 409
    assert (await browse(stocked, "POST", f"{run}/replay", headers=viewer, data=alone)).status_code == 403


@pytest.mark.requirement("C6")
async def test_streams_of_the_console_are_among_those_of_its_key() -> None:
    async with Harness(settings=the_settings(max_connections=1)).service() as service:
        await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
        await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "x"})
        run = {"agent": "guide", "input": "hello"}
        ended = (await service.call("POST", "/v1/runs/wait", json=run)).json()["run"]["id"]
        admin = await signed_in(service)
        started = await browse(service, "POST", f"{await saved(service)}/runs", headers=admin, data={"input": "{}"})
        workflow_run = started.headers["hx-redirect"]
        await browse(service, "POST", f"{workflow_run}/cancel", headers=admin)
        paths = f"/console/runs/{ended}/stream", f"{workflow_run}/stream"

        service.worker.act = Act.REST
        running = (await service.call("POST", "/v1/runs", json=run)).json()["id"]
        open_one = Conversation(service.app, "GET", f"/v1/runs/{running}/stream")
        holding = asyncio.create_task(open_one.hold())
        await open_one.received(1)
        assert [(await browse(service, "GET", path, headers=admin)).status_code for path in paths] == [429, 429]
        open_one.left.set()
        await holding
        for path in (*paths, *paths):
            assert (await browse(service, "GET", path, headers=admin)).status_code == 200


async def asking_run(service: Service, schema: JsonValue) -> str:
    """A workflow run whose node asks a person; its page's path."""
    path = await saved(service)
    runner = await signed_in(service, token_of(Role.RUNNER))
    started = await browse(service, "POST", f"{path}/runs", headers=runner, data={"input": "{}"})
    page = started.headers["hx-redirect"]
    journal = service.stores.workflow_journal
    claimed = await journal.claim(WorkflowRunId(page.rpartition("/")[2]), WorkerId("w"), lease_s=10, at=START)
    assert claimed is not None
    asked: JsonValue = {"prompt": "Is it <good>?", "schema": schema}
    node = NodeRun(node_id="answer").started(at=START).waiting(due_at=None, asked=asked)
    waiting = replace(claimed.run, nodes={"answer": node}).suspended(wake_at=None)
    await journal.commit(claimed.lease, waiting, at=START)
    return page


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    ("schema", "wrong", "entered", "answer"),
    [
        ({"type": "boolean"}, {"answer": "perhaps"}, {"answer": "true"}, True),
        ({"enum": ["a", 2]}, {"answer": '"b"'}, {"answer": "2"}, 2),
        ({"type": "string", "minLength": 2}, {"answer": "x"}, {"answer": "yes"}, "yes"),
        ({"type": "object"}, {"answer": "{"}, {"answer": '{"a": 1}'}, {"a": 1}),
        (None, {"answer": "{", "format": "json"}, {"answer": "{"}, "{"),
        (None, {"answer": "x", "format": "json"}, {"answer": "[1]", "format": "json"}, [1]),
        (None, {"answer": "NaN", "format": "json"}, {"answer": "0.5", "format": "json"}, 0.5),
    ],
)
async def test_a_person_answers_a_node_by_what_it_asks_for(
    stocked: Service, schema: JsonValue, wrong: dict[str, str], entered: dict[str, str], answer: JsonValue
) -> None:
    page = await asking_run(stocked, schema)
    operator, viewer = (
        await signed_in(stocked, token_of(Role.OPERATOR)),
        await signed_in(stocked, token_of(Role.VIEWER)),
    )
    assert "Is it &lt;good&gt;?" in (await browse(stocked, "GET", page, headers=operator)).text
    assert "hx-post" not in (await browse(stocked, "GET", page, headers=viewer)).text.partition("<main")[2].replace(
        f'hx-post="{page}/answer"', ""
    )
    node = {"node_id": "answer"}
    refused = await browse(stocked, "POST", f"{page}/answer", headers=operator, data=node | wrong)
    assert faults(refused) == ["answer-answer"]
    assert '<a href="#answer-answer">Answer' in refused.text
    assert "<code>" not in refused.text
    denied = await browse(stocked, "POST", f"{page}/answer", headers=viewer, data=node | entered)
    assert denied.status_code == 403
    other = await browse(stocked, "POST", f"{page}/answer", headers=operator, data={"node_id": "start"} | entered)
    assert other.status_code == 409
    done = await browse(stocked, "POST", f"{page}/answer", headers=operator, data=node | entered)
    assert done.headers["hx-trigger"] == "workflow-changed"
    run = (await stocked.call("GET", f"/v1/workflow-runs/{page.rpartition('/')[2]}")).json()
    (stored,) = (each for each in run["nodes"] if each["node_id"] == "answer")
    assert (stored["status"], stored["output"]) == ("succeeded", answer)


@pytest.mark.requirement("F4")
async def test_a_page_follows_a_run_beyond_where_it_waits_for_somebody(stocked: Service) -> None:
    page = await asking_run(stocked, None)
    run_id = WorkflowRunId(page.rpartition("/")[2])
    stores = stocked.stores
    keys = KeyValidity(
        identities=stores.identity,
        user_access=stores.user_access,
        console_sessions=stores.console_sessions,
        impersonations=create_autospec(Impersonations, instance=True),
        cache=TokenCache(capacity=1),
        caller_teams=create_autospec(CallerTeams, instance=True),
        clock=StepClock(),
    )
    watch = WatchWorkflowRun(runs=stores.workflow_runs, keys=keys, wakeups=stores.wakeups)
    principal = a_principal(Role.VIEWER)
    async with aclosing(watch.follow(principal, run_id, to_the_end=True)) as events:
        async for event in events:
            if event.type is WorkflowEventType.REQUIRES_ACTION:
                break
        operator = await signed_in(stocked, token_of(Role.OPERATOR))
        await browse(stocked, "POST", f"{page}/cancel", headers=operator)
        assert [event.type async for event in events][-1] is WorkflowEventType.CANCELLED
    async with aclosing(watch.follow(principal, run_id)) as events:
        assert [event.type async for event in events][-1] is WorkflowEventType.CANCELLED


@pytest.mark.requirement("C3", "F4")
async def test_what_the_run_of_an_agent_waits_for_is_decided_on_the_page_of_the_workflow_run(stocked: Service) -> None:
    assert (await stocked.call("POST", "/v1/workflows", json=ASKING)).status_code == 201
    run_id, run = await waiting_for_agent(stocked, Act.APPROVE)
    approval = run["pending"][0]["approval_id"]  # type: ignore[index]
    operator = await signed_in(stocked, token_of(Role.OPERATOR))
    page = (await browse(stocked, "GET", f"/console/workflows/runs/{run_id}", headers=operator)).text
    assert f'hx-post="/console/approvals/{approval}"' in page
    assert f'href="/console/runs/{run["id"]}"' in page


@pytest.mark.requirement("C6")
async def test_each_role_sees_and_may_what_the_api_lets_it_and_strangers_find_nothing(stocked: Service) -> None:
    path = await saved(stocked)
    admin = await signed_in(stocked)
    run = (await browse(stocked, "POST", f"{path}/runs", headers=admin, data={"input": "{}"})).headers["hx-redirect"]
    for role in (Role.VIEWER, Role.RUNNER, Role.OPERATOR):
        person = await signed_in(stocked, token_of(role))
        for method, where in (
            *(("GET", page) for page in ("/console/workflows/new", f"{path}/edit")),
            *(
                ("POST", page)
                for page in ("/console/workflows/check", "/console/workflows/new", f"{path}/edit", f"{path}/delete")
            ),
        ):
            form = {"definition": TEXT} if method == "POST" else None
            assert (await browse(stocked, method, where, headers=person, data=form)).status_code == 403, where
        page = (await browse(stocked, "GET", path, headers=person)).text
        assert ">Edit<" not in page
        assert ">Delete<" not in page
        assert (">Start the run<" in page) == (role is not Role.VIEWER)
        shown = (await browse(stocked, "GET", run, headers=person)).text
        assert ("Cancel the run" in shown) == (role is Role.OPERATOR)
        if role is not Role.OPERATOR:
            assert (await browse(stocked, "POST", f"{run}/cancel", headers=person)).status_code == 403
    viewer = await signed_in(stocked, token_of(Role.VIEWER))
    assert (await browse(stocked, "POST", f"{path}/runs", headers=viewer, data={"input": "{}"})).status_code == 403
    stranger = await signed_in(stocked, OTHER_ADMIN)
    for page in (path, f"{path}/edit", run, f"{run}/state", f"{run}/stream"):
        assert (await browse(stocked, "GET", page, headers=stranger)).status_code == 404
    form = {"definition": TEXT.replace("guide", "g"), "input": "{}", "node_id": "answer", "version": "1"}
    for where in (f"{path}/delete", f"{path}/runs", f"{run}/cancel", f"{run}/answer"):
        assert (await browse(stocked, "POST", where, headers=stranger, data=form)).status_code == 404
    for where in (f"{path}/delete", f"{path}/runs", f"{run}/cancel", f"{run}/answer", "/console/workflows/check"):
        assert (await browse(stocked, "POST", where, headers={"cookie": admin["cookie"]}, data=form)).status_code == 403
    assert "answers" not in (await browse(stocked, "GET", "/console/workflows", headers=stranger)).text
