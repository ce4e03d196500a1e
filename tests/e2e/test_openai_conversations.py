"""Conversations as OpenAI's own library for Python has them. Its strict validation holds every
answer to its types."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.service import Service, a_turn, serving
from tests.e2e.test_openai_chat import PIXEL, Connect, openai_client
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("X1"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("conversations") / "home") as running:
        running.watched_server("watched", trusted=True)
        running.agent("told", running.script("told", {"text": "You said: {{ user }}"}))
        looks = a_turn("Looking.", ("mcp__watched__look", {"text": "x"}), ("code_execution", {"code": "print(1)"}))
        script = running.script("looks", looks, a_turn("Found."))
        running.agent("looks", script, mcp_servers=["watched"], tools=["code_execution"])
        yield running


@pytest.fixture
def connect(service: Service) -> Iterator[Connect]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(openai_client(service, **options))


def test_responses_of_a_conversation_are_runs_on_its_thread(service: Service, connect: Connect) -> None:
    client = connect()
    conversation = client.conversations.create(metadata={"ticket": "T-7"})
    assert client.conversations.retrieve(conversation.id) == conversation
    thread_id = f"thr_{conversation.id.removeprefix('conv_')}"
    assert service.call("GET", f"/threads/{thread_id}")["metadata"] == {"ticket": "T-7"}
    for text in ("one", "two"):
        response = client.responses.create(model="told", input=text, conversation=conversation.id)
        assert response.conversation.id == conversation.id
        assert client.responses.retrieve(response.id) == response
    runs = service.call("GET", f"/runs?thread_id={thread_id}")["data"]
    assert len(runs) == 2
    said = [item.content[0].text for item in client.conversations.items.list(conversation.id, order="asc", limit=1)]
    assert said == ["one", "You said: one", "two", "You said: two"]


def test_items_are_added_read_and_become_what_the_agent_reads(service: Service, connect: Connect) -> None:
    client = connect()
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}, picture]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]},
    ]
    conversation = client.conversations.create(items=items)
    added = client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "Also this."}])
    [last] = added.data
    assert client.conversations.items.retrieve(last.id, conversation_id=conversation.id) == last
    kept = client.conversations.items.list(conversation.id, order="asc").data
    assert [part.type for part in kept[0].content] == ["input_text", "input_image"]
    assert [item.role for item in kept] == ["user", "assistant", "user"]
    client.responses.create(model="told", input="And?", conversation=conversation.id)
    thread_id = f"thr_{conversation.id.removeprefix('conv_')}"
    messages = service.call("GET", f"/threads/{thread_id}/messages")["data"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "assistant"]


def test_calls_of_the_agent_are_items_with_their_results(connect: Connect) -> None:
    client = connect()
    conversation = client.conversations.create()
    client.responses.create(model="looks", input="look", conversation=conversation.id)
    items = client.conversations.items.list(conversation.id, order="asc").data
    kinds = ["message", "message", "mcp_call", "function_call", "function_call_output", "message"]
    assert [item.type for item in items] == kinds
    assert (items[2].server_label, items[2].output) == ("watched", "look says x")
    assert items[3].call_id == items[4].call_id
    assert "1" in items[4].output


def test_a_conversation_is_deleted_with_its_responses(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    conversation = client.conversations.create()
    response = client.responses.create(model="told", input="one", conversation=conversation.id)
    assert client.conversations.delete(conversation.id).deleted
    for path, identifier in (
        (client.conversations.retrieve, conversation.id),
        (client.responses.retrieve, response.id),
    ):
        with pytest.raises(openai.NotFoundError):
            path(identifier)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="told", input="two", conversation=conversation.id)


def test_what_only_runs_add_is_refused(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    conversation = client.conversations.create()
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    for item in (call, {"role": "system", "content": "x"}, {"type": "item_reference", "id": "msg_1"}):
        with pytest.raises(openai.BadRequestError):
            client.conversations.items.create(conversation.id, items=[item])
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve("msg_1", conversation_id=conversation.id)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="told", input="x", conversation=conversation.id, previous_response_id="resp_1")
