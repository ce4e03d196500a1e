"""The client for Python against a real service."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman_client import (
    AsyncDragoman,
    Conflict,
    ConnectionLost,
    Dragoman,
    DragomanError,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    models,
)
from tests.e2e.client_story import LETTER, NOTE, TALK, a_staff, first_responses_lost, streams_cut_early
from tests.e2e.cutting import cutting
from tests.e2e.service import Service, a_turn, serving

pytestmark = pytest.mark.requirement("E1", "U5")


@pytest.fixture(scope="module")
def staffed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("clients") / "home") as service:
        a_staff(service)
        yield service


@pytest.fixture
def dragoman(staffed: Service) -> Iterator[Dragoman]:
    with Dragoman(staffed.url, staffed.key) as client:
        yield client


def told(events: list[models.RunEventView]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "message.delta")


def test_a_stream_that_is_cut_again_and_again_gives_every_event_once(staffed: Service) -> None:
    with cutting(staffed.url, streams_cut_early()) as relay, Dragoman(relay.url, staffed.key) as client:
        run = client.runs.start(agent="teller", input="Go.")
        seen: list[models.RunEventView] = []
        for event in run.stream():
            seen.append(event)
            if event["type"] == "run.requires_action":
                for call in run.pending:
                    assert call.approve()["state"] == "approved"
    assert len(relay.cut) > 5
    assert seen == staffed.events(run.id)
    assert told(seen) == TALK * 2
    assert run.status == "completed"


async def test_the_asynchronous_client_tells_the_same(staffed: Service) -> None:
    with cutting(staffed.url, streams_cut_early()) as relay:
        async with AsyncDragoman(relay.url, staffed.key) as client:
            run = await client.runs.start(agent="teller", input="Go.")
            seen: list[models.RunEventView] = []
            async for event in run.stream():
                seen.append(event)
                if event["type"] == "run.requires_action":
                    for call in run.pending:
                        await call.approve()
            listed = [each.id async for each in client.runs.list(thread_id=run.thread_id)]
    assert len(relay.cut) > 5
    assert seen == await asyncio.to_thread(staffed.events, run.id)
    assert (run.status, listed) == ("completed", [run.id])


def test_a_stream_ends_where_the_run_waits_and_is_taken_up_there(dragoman: Dragoman, staffed: Service) -> None:
    run = dragoman.runs.start(agent="teller", input="Go.")
    first = list(run.stream())
    assert (first[-1]["type"], run.status) == ("run.requires_action", "requires_action")
    yes, no = run.pending
    assert (yes.name, yes.params, no.params) == (NOTE, {"text": "one"}, {"text": "two"})
    yes.approve(arguments={"text": "three"}, reason="Better.")
    no.deny("Not that.")
    rest = list(run.stream())
    assert [*first, *rest] == staffed.events(run.id)
    assert [event["seq"] for event in run.stream(after=3)] == [event["seq"] for event in [*first, *rest]][3:]
    assert run.status == "completed"
    with pytest.raises(Conflict) as refused:
        no.approve()
    assert refused.value.code == "approval_decided"
    states = {approval["state"] for approval in dragoman.approvals.list(run_id=run.id)}
    assert states == {"approved", "denied"}


def test_a_client_tool_is_settled_by_its_result(dragoman: Dragoman) -> None:
    run = dragoman.runs.start(agent="secretary", input="Write to Ada.").wait()
    [call] = run.pending
    assert (run.status, call.name, call.params) == ("requires_action", "send_email", LETTER)
    with pytest.raises(DragomanError, match="waits for a result"):
        call.approve()
    call.result("sent")
    assert run.wait().status == "completed"
    assert run.output == "It was sent."
    assert [message["role"] for message in run.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_start_whose_response_is_lost_starts_one_run(staffed: Service) -> None:
    lost = first_responses_lost("POST /v1/runs ", "GET /v1/runs/")
    with cutting(staffed.url, lost) as relay, Dragoman(relay.url, staffed.key) as client:
        thread = client.threads.create()
        run = thread.start(agent="secretary", input="Write to Ada.").refresh()
        assert [each.id for each in client.runs.list(thread_id=thread.id)] == [run.id]
        assert len(relay.cut) == 2
        again = [client.runs.start(agent="secretary", input="Hi.", idempotency_key="mine").id for _ in range(2)]
        assert again[0] == again[1]


def test_what_is_not_safe_to_repeat_is_not_repeated(staffed: Service) -> None:
    with (
        cutting(staffed.url, first_responses_lost("POST /v1/threads ")) as relay,
        Dragoman(relay.url, staffed.key) as client,
    ):
        before = len(list(client.threads.list()))
        with pytest.raises(ConnectionLost):
            client.threads.create()
        assert len(list(client.threads.list())) == before + 1


def test_a_file_is_uploaded_listed_and_downloaded(dragoman: Dragoman, tmp_path: Path) -> None:
    report = tmp_path / "bees.md"
    report.write_text("# Bees\nThey hum.\n", encoding="utf-8")
    thread = dragoman.threads.create({"ticket": "T-7"})
    source = thread.upload(report)
    other = thread.upload(b"1,2\n", name="numbers.csv")
    assert (source["name"], source["kind"], source["searchable"]) == ("bees.md", "markdown", True)
    assert [each["id"] for each in thread.sources()] == [other["id"], source["id"]]
    assert dragoman.download(source["id"]) == report.read_bytes()
    assert dragoman.threads.get(thread.id).view["metadata"] == {"ticket": "T-7"}


def test_lists_are_read_to_their_end(dragoman: Dragoman) -> None:
    thread = dragoman.threads.create()
    texts = [f"message {number}" for number in range(7)]
    for text in texts:
        thread.append(text)
    pages = [message["content"] for message in dragoman.pages(f"/threads/{thread.id}/messages", limit=3)]
    assert [content[0]["text"] for content in pages] == texts
    assert len(list(thread.messages())) == 7
    thread.delete()
    with pytest.raises(NotFound):
        dragoman.threads.get(thread.id)


def test_agents_and_servers_are_saved_by_name(dragoman: Dragoman, staffed: Service) -> None:
    model = staffed.script("hello", a_turn("Hello."))
    assert dragoman.agents.apply(name="a b", model=model)["version"] == 1
    saved = dragoman.agents.apply(name="a b", model=model, instructions="Be brief.")
    assert (saved["version"], dragoman.agents.get("a b")["instructions"]) == (2, "Be brief.")
    assert "a b" in [agent["name"] for agent in dragoman.agents.list()]
    dragoman.agents.delete("a b")
    assert [server["slug"] for server in dragoman.servers.list()] == ["watched"]
    assert dragoman.servers.test("watched")["ok"]
    assert dragoman.servers.apply(slug="watched", kind="custom", timeout_s=20)["timeout_s"] == 20


def test_a_workflow_run_is_started_answered_and_followed_over_broken_connections(staffed: Service) -> None:
    cut = first_responses_lost("POST /v1/workflows/", "GET /v1/workflow-runs/")
    with cutting(staffed.url, cut) as relay, Dragoman(relay.url, staffed.key) as client:
        run = client.workflow_runs.start("review", input={"text": "Publish"})
        seen = []
        for event in run.stream():
            seen.append(event["type"])
            if event["type"] == "workflow.requires_action":
                [waiting] = run.pending
                assert waiting["node_id"] == "person"
                run.answer("person", True)
        assert len(relay.cut) == 2
        assert (run.status, run.output) == ("completed", ["Publish", True])
        assert (seen.count("workflow.requires_action"), seen[-1]) == (1, "workflow.completed")
        assert [event["type"] for event in run.stream(after=2)] == seen[2:]
        assert [each["id"] for each in client.workflow_runs.list(workflow_id=run.view["workflow_id"])] == [run.id]


def test_a_workflow_run_is_waited_for_and_cancelled(dragoman: Dragoman) -> None:
    run = dragoman.workflow_runs.start("review", input={"text": "Publish"}).wait()
    assert (run.status, run.pending[0]["node_id"]) == ("requires_action", "person")
    with pytest.raises(Invalid):
        run.answer("person", "perhaps")
    assert dragoman.workflow_runs.get(run.id).cancel().wait().status == "cancelled"
    with pytest.raises(NotFound):
        dragoman.workflow_runs.start("nowhere")


def test_errors_say_what_the_service_says(dragoman: Dragoman, staffed: Service) -> None:
    with pytest.raises(NotFound) as missing:
        dragoman.runs.get("run_none")
    assert (missing.value.status, missing.value.code) == (404, "run_not_found")
    assert "run_none" in missing.value.detail
    with pytest.raises(Invalid) as invalid:
        dragoman.request("POST", "/runs", json={"agent": "teller", "inputs": "Go."})
    assert {fault["path"] for fault in invalid.value.errors} == {"input", "inputs"}
    with Dragoman(staffed.url, "dgm_wrong") as stranger, pytest.raises(Unauthenticated):
        list(stranger.runs.list())
    viewer = dragoman.request("POST", "/api-keys", json={"name": "viewer", "role": "viewer"})
    with Dragoman(staffed.url, viewer["token"]) as reader, pytest.raises(Forbidden) as refused:
        reader.threads.create()
    assert refused.value.code == "role_insufficient"
    with pytest.raises(DragomanError, match="DRAGOMAN_API_KEY"):
        Dragoman(staffed.url)


def test_a_service_that_is_not_there_is_a_lost_connection() -> None:
    with Dragoman("http://127.0.0.1:9", "dgm_any", retries=1) as client, pytest.raises(ConnectionLost):
        client.runs.start(agent="teller", input="Go.")
