"""Threads over HTTP, their messages and forks."""

import pytest

from tests.integration.http.service import Service, problem_of


async def test_a_thread_is_created_spoken_in_and_deleted(service: Service) -> None:
    created = await service.call("POST", "/v1/threads", json={"metadata": {"ticket": ["T", 7]}})
    thread = created.json()
    assert (created.status_code, created.headers["location"]) == (201, f"/v1/threads/{thread['id']}")
    assert thread["metadata"] == {"ticket": ["T", 7]}
    assert (await service.call("GET", f"/v1/threads/{thread['id']}")).json() == thread
    assert (await service.call("GET", "/v1/threads")).json() == {
        "data": [{**thread, "opening": None}],
        "next_cursor": None,
    }

    messages = f"/v1/threads/{thread['id']}/messages"
    parts = [{"type": "text", "text": "look"}, {"type": "image", "media_type": "image/png", "data": "aGk="}]
    first = await service.call("POST", messages, json={"role": "user", "content": "hi"})
    second = await service.call("POST", messages, json={"role": "user", "content": parts})
    assert (first.status_code, first.json()["content"]) == (201, [{"type": "text", "text": "hi"}])
    assert (await service.call("GET", "/v1/threads")).json()["data"] == [{**thread, "opening": "hi"}]
    assert (second.json()["content"], second.json()["run_id"]) == (parts, None)
    listed = (await service.call("GET", messages)).json()
    assert listed == {"data": [first.json(), second.json()], "next_cursor": None}

    assert (await service.call("DELETE", f"/v1/threads/{thread['id']}")).status_code == 204
    problem_of(await service.call("GET", messages), 404, "thread_not_found")


@pytest.mark.requirement("U6")
async def test_a_thread_is_forked_before_a_message_and_both_name_each_other(service: Service) -> None:
    thread = (await service.call("POST", "/v1/threads", json={"metadata": {"ticket": 7}})).json()
    path = f"/v1/threads/{thread['id']}"
    said = [
        (await service.call("POST", f"{path}/messages", json={"role": role, "content": text})).json()
        for role, text in (("user", "apples"), ("assistant", "42"), ("user", "pears"))
    ]
    forked = await service.call("POST", f"{path}/fork", json={"before_message_id": said[2]["id"]})
    fork = forked.json()
    assert (forked.status_code, forked.headers["location"]) == (201, f"/v1/threads/{fork['id']}")
    assert fork["forked_from"] == {"thread_id": thread["id"], "before_message_id": said[2]["id"]}
    assert (fork["metadata"], thread["forked_from"]) == ({"ticket": 7}, None)
    copied = (await service.call("GET", f"/v1/threads/{fork['id']}/messages")).json()["data"]
    assert copied == said[:2]
    forks = (await service.call("GET", f"/v1/threads?forked_from={thread['id']}")).json()["data"]
    assert forks == [{**fork, "opening": "apples"}]
    whole = await service.call("POST", f"{path}/fork")
    assert whole.json()["forked_from"] == {"thread_id": thread["id"], "before_message_id": None}
    wrong = await service.call("POST", f"{path}/fork", json={"before_message_id": said[1]["id"]})
    problem_of(wrong, 422, "fork_place_invalid")
    problem_of(
        await service.call("POST", f"{path}/fork", json={"before_message_id": "msg_0"}), 404, "message_not_found"
    )
