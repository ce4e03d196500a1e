"""Images and files of messages over HTTP: attached inline or as sources of the thread, and where
their bytes are shown."""

import base64

import pytest

from domain.threads.attachments import MAX_ATTACHED_BYTES, MAX_ATTACHMENTS
from tests.composition import MODEL
from tests.integration.http.service import Service, paths_of, problem_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_sources import a_thread, upload

pytestmark = pytest.mark.requirement("H5")
PDF = base64.b64encode(b"%PDF-1.7").decode()
REPORT = {"type": "file", "media_type": "application/pdf", "name": "report.pdf", "data": PDF}
SIZED = {"type": "file", "media_type": "application/pdf", "name": "report.pdf", "bytes": 8}
QUESTION = {"type": "text", "text": "What is in it?"}


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})


@pytest.mark.requirement("A1")
async def test_a_file_is_stored_with_its_message_and_shown_with_its_bytes_there_alone(service: Service) -> None:
    body = {"agent": "guide", "input": [QUESTION, REPORT]}
    run = (await service.call("POST", "/v1/runs/wait", json=body)).json()["run"]
    assert run["input"] == [QUESTION, REPORT]
    messages = (await service.call("GET", f"/v1/threads/{run['thread_id']}/messages")).json()["data"]
    assert messages[0]["content"] == [QUESTION, REPORT]
    [listed] = (await service.call("GET", "/v1/runs")).json()["data"]
    assert listed["input"] == [QUESTION, SIZED]
    events = await service.call("GET", f"/v1/runs/{run['id']}/events")
    shown = [event["message"]["content"] for event in events.json()["data"] if event["type"] == "message.completed"]
    assert shown[0] == [QUESTION, SIZED]
    stream = await service.call("GET", f"/v1/runs/{run['id']}/stream")
    assert PDF not in events.text + stream.text


@pytest.mark.requirement("A1")
async def test_lists_of_runs_have_the_sizes_of_images(service: Service) -> None:
    picture = {"type": "image", "media_type": "image/png", "data": "aGk="}
    linked = {"type": "image", "media_type": "image/png", "url": "https://example.org/a.png"}
    started = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": [picture, linked]})
    assert (await service.call("GET", f"/v1/runs/{started.json()['id']}")).json()["input"] == [picture, linked]
    [listed] = (await service.call("GET", "/v1/runs")).json()["data"]
    assert listed["input"] == [{"type": "image", "media_type": "image/png", "bytes": 2}, linked]


async def test_a_source_is_attached_as_it_was_when_the_run_started(service: Service) -> None:
    thread = await a_thread(service)
    source = (await upload(service, thread, "report.pdf", b"%PDF-1.7"))["id"]
    body = {"agent": "guide", "input": [QUESTION, {"type": "source", "source_id": source}]}
    await service.call("POST", f"/v1/threads/{thread}/runs/wait", json=body)
    assert (await service.call("DELETE", f"/v1/sources/{source}")).status_code == 204
    messages = (await service.call("GET", f"/v1/threads/{thread}/messages")).json()["data"]
    assert messages[0]["content"] == [QUESTION, REPORT]
    gone = await service.call("POST", f"/v1/threads/{thread}/runs", json=body)
    problem_of(gone, 404, "source_not_found")


async def test_a_message_outside_a_run_has_files_too(service: Service) -> None:
    thread = await a_thread(service)
    linked = {"type": "file", "media_type": "application/pdf", "url": "https://example.org/a.pdf"}
    body = {"role": "user", "content": [REPORT, linked]}
    stored = await service.call("POST", f"/v1/threads/{thread}/messages", json=body)
    assert stored.json()["content"] == [REPORT, linked]
    picture = {"type": "file", "media_type": "image/png", "name": "a.png", "data": "aGk="}
    stored = await service.call("POST", f"/v1/threads/{thread}/messages", json={"role": "user", "content": [picture]})
    assert stored.json()["content"] == [{"type": "image", "media_type": "image/png", "data": "aGk="}]


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        ({"type": "file", "media_type": "application/pdf"}, ["input.0"]),
        ({**REPORT, "url": "https://example.org/a.pdf"}, ["input.0"]),
        ({**REPORT, "data": "%%%"}, ["input.0"]),
        ({**REPORT, "media_type": "pdf"}, ["input.0.media_type"]),
        ({"type": "file", "media_type": "application/pdf", "url": "file:///etc/passwd"}, ["input.0.url"]),
        ({"type": "source"}, ["input.0.source_id"]),
    ],
)
async def test_a_part_that_is_no_file_is_refused_with_its_path(
    service: Service, part: dict[str, object], paths: list[str]
) -> None:
    response = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": [part]})
    assert paths_of(problem_of(response, 422, "body_invalid")) == paths


@pytest.mark.parametrize(
    "parts",
    [
        [REPORT] * (MAX_ATTACHMENTS + 1),
        [{**REPORT, "data": base64.b64encode(bytes(MAX_ATTACHED_BYTES + 1)).decode()}],
    ],
    ids=["too many", "too large"],
)
async def test_too_much_is_refused(service: Service, parts: list[object]) -> None:
    started = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": parts})
    assert paths_of(problem_of(started, 422, "attachments_too_large")) == ["input"]
    thread = await a_thread(service)
    body = {"role": "user", "content": parts}
    added = await service.call("POST", f"/v1/threads/{thread}/messages", json=body)
    assert paths_of(problem_of(added, 422, "attachments_too_large")) == ["content"]


async def test_too_many_sources_are_refused_before_they_are_looked_for(service: Service) -> None:
    parts = [{"type": "source", "source_id": "src_00000000000000000000000001"}] * (MAX_ATTACHMENTS + 1)
    started = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": parts})
    assert paths_of(problem_of(started, 422, "attachments_too_large")) == ["input"]


async def test_the_playground_refuses_too_many_files(service: Service) -> None:
    browser = await signed_in(service)
    fields = {"agent": "guide", "input": "What is in it?"}
    chosen = [("files", (f"{n}.txt", b"a")) for n in range(MAX_ATTACHMENTS + 1)]
    answer = await service.client.post("/console/playground", headers=browser, data=fields, files=chosen)
    assert (answer.status_code, "hx-redirect" in answer.headers) == (422, False)


async def test_the_playground_attaches_chosen_files(service: Service) -> None:
    browser = await signed_in(service)
    fields = {"agent": "guide", "input": "What is in it?"}
    chosen = [("files", ("report.pdf", b"%PDF-1.7")), ("files", ("&.txt", b"&" * 6_000))]
    answer = await service.client.post("/console/playground", headers=browser, data=fields, files=chosen)
    run_id = answer.headers["hx-redirect"].rpartition("/")[2]
    text, report, signs = (await service.call("GET", f"/v1/runs/{run_id}")).json()["input"]
    assert (text, report, signs["media_type"]) == (QUESTION, REPORT, "text/plain")
    without = await browse(service, "POST", "/console/playground", headers=browser, data=fields)
    run_id = without.headers["hx-redirect"].rpartition("/")[2]
    assert (await service.call("GET", f"/v1/runs/{run_id}")).json()["input"] == [QUESTION]
