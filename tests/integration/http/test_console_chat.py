"""The chat's pages: conversations by their first words, their messages, and a message that starts a
run."""

import re

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import OTHER_ADMIN, Act, Service, token_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("U6")


async def sent(service: Service, text: str, **fields: str) -> dict[str, str]:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    form = {"agent": "guide", "input": text, **fields}
    answer = await browse(service, "POST", "/console/chat", headers=await signed_in(service), data=form)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_message_starts_a_run_and_the_next_one_continues_its_thread(service: Service) -> None:
    first = await sent(service, "Count the <b>apples</b>")
    second = await sent(service, "And the pears", thread_id=first["thread_id"])
    assert second["thread_id"] == first["thread_id"]
    browser = await signed_in(service)
    page = (await browse(service, "GET", f"/console/chat/{first['thread_id']}", headers=browser)).text
    assert re.search(r'aria-current="page">Count the &lt;b&gt;apples&lt;/b&gt;</a>', page)
    read = (await browse(service, "GET", f"/console/chat/{first['thread_id']}/messages", headers=browser)).json()
    assert read["data"][0]["content"] == [{"type": "text", "text": "Count the <b>apples</b>"}]
    assert read["runs"] == [{"id": second["run_id"]}]


async def test_unfinished_runs_are_followed_oldest_first(service: Service) -> None:
    ended = await sent(service, "Count the apples")
    service.worker.act = Act.REST
    thread = ended["thread_id"]
    unfinished = [(await sent(service, text, thread_id=thread))["run_id"] for text in ("Pears", "Plums")]
    read = await browse(service, "GET", f"/console/chat/{thread}/messages", headers=await signed_in(service))
    assert [run["id"] for run in read.json()["runs"]] == unfinished


async def test_conversations_are_searched_by_their_first_words(service: Service) -> None:
    await sent(service, "Count the apples")
    await sent(service, "Weigh the pears")
    browser = await signed_in(service)
    found = (await browse(service, "GET", "/console/parts/conversations?q=APPLES", headers=browser)).text
    assert "Count the apples" in found
    assert "Weigh the pears" not in found
    nothing = (await browse(service, "GET", "/console/parts/conversations?q=plums", headers=browser)).text
    assert "None of the newest 10,000 conversations has this text at its beginning." in nothing


async def test_who_may_not_write_reads_and_strangers_find_nothing(service: Service) -> None:
    thread = (await sent(service, "Count the apples"))["thread_id"]
    viewer = await signed_in(service, token_of(Role.VIEWER))
    page = await browse(service, "GET", f"/console/chat/{thread}", headers=viewer)
    assert "Writing requires the role runner." in page.text
    refused = await browse(service, "POST", "/console/chat", headers=viewer, data={"agent": "guide", "input": "x"})
    assert refused.status_code == 403
    stranger = await signed_in(service, OTHER_ADMIN)
    assert "Count the apples" not in (await browse(service, "GET", "/console/chat", headers=stranger)).text
    for path in (f"/console/chat/{thread}", f"/console/chat/{thread}/messages"):
        assert (await browse(service, "GET", path, headers=stranger)).status_code == 404


async def test_an_edited_message_starts_a_run_on_a_fork_with_what_was_attached(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    parts = [{"type": "text", "text": "Count the apples"}, {"type": "image", "media_type": "image/png", "data": "aGk="}]
    first = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": parts})).json()["thread_id"]
    browser = await signed_in(service)
    [message, *_] = (await browse(service, "GET", f"/console/chat/{first}/messages", headers=browser)).json()["data"]
    edited = await sent(service, "Count the pears", thread_id=first, before=message["id"])
    fork = edited["thread_id"]
    assert fork != first
    told = (await browse(service, "GET", f"/console/chat/{fork}/messages", headers=browser)).json()
    assert told["data"][0]["content"] == [{"type": "text", "text": "Count the pears"}, parts[1]]
    origin = (await browse(service, "GET", f"/console/chat/{first}/messages", headers=browser)).json()
    assert (origin["forks"], told["forks"]) == ([{"thread_id": fork, "before": message["id"]}], [])
    page = (await browse(service, "GET", f"/console/chat/{fork}", headers=browser)).text
    assert f'href="/console/chat/{first}#{message["id"]}"' in page
    assert (await service.call("DELETE", f"/v1/threads/{first}")).status_code == 204
    assert "was deleted" in (await browse(service, "GET", f"/console/chat/{fork}", headers=browser)).text


async def test_a_refused_edit_leaves_no_fork(service: Service) -> None:
    thread = (await sent(service, "Count the apples"))["thread_id"]
    browser = await signed_in(service)
    [message, *_] = (await browse(service, "GET", f"/console/chat/{thread}/messages", headers=browser)).json()["data"]
    form = {"agent": "guide", "input": " ", "thread_id": thread, "before": message["id"]}
    refused = await browse(service, "POST", "/console/chat", headers=browser, data=form)
    assert refused.status_code == 422
    assert len((await service.call("GET", "/v1/threads")).json()["data"]) == 1


async def test_a_link_opens_a_conversation_for_reading(service: Service) -> None:
    thread = (await sent(service, "Count the apples"))["thread_id"]
    runner = await signed_in(service, token_of(Role.RUNNER))
    shared = (await browse(service, "GET", f"/console/chat/{thread}?shared=msg_1", headers=runner)).text
    assert 'data-shared="msg_1"' in shared
    assert "Write in it" in shared
    assert 'id="composer"' not in shared
    stranger = await signed_in(service, OTHER_ADMIN)
    assert (await browse(service, "GET", f"/console/chat/{thread}?shared=msg_1", headers=stranger)).status_code == 404


async def test_a_branch_sees_the_files_that_the_conversation_had_at_its_place(service: Service) -> None:
    thread = (await service.call("POST", "/v1/threads")).json()["id"]
    path = f"/v1/threads/{thread}"
    await service.call("POST", f"{path}/sources?name=notes.md", content=b"# Notes")
    said = {"role": "user", "content": "Read the notes."}
    message = (await service.call("POST", f"{path}/messages", json=said)).json()
    await service.call("POST", f"{path}/sources?name=later.md", content=b"# Later")
    edited = await sent(service, "Read them again.", thread_id=thread, before=message["id"])
    of_branch = (await service.call("GET", f"/v1/threads/{edited['thread_id']}/sources")).json()["data"]
    assert [source["name"] for source in of_branch] == ["notes.md"]
    assert len((await service.call("GET", f"{path}/sources")).json()["data"]) == 2
