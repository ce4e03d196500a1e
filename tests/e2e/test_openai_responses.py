"""Responses as OpenAI's own library for Python has them. Its strict validation holds every answer
to its types."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.e2e.test_openai_chat import PIXEL, Connect, openai_client
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("X1"), pytest.mark.timeout(240)]

LOOK, NOTE = "mcp__watched__look", "mcp__watched__note"
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Json = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}
WATCHED: Json = {"type": "mcp", "server_label": "watched", "require_approval": "never"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("responses") / "home") as running:
        running.watched_server("watched", trusted=True)
        running.call("POST", "/mcp-servers/watched/refresh")
        usage = {"input_tokens": 7, "output_tokens": 3}
        running.agent("told", running.script("told", {"text": "You said: {{ user }}", "usage": usage}))
        looks = running.script("looks", a_turn("Looking.", (LOOK, {"text": "x"})), a_turn("Found."))
        running.agent("looks", looks, mcp_servers=["watched"])
        calls = a_turn("", ("weather", {"city": "Lisbon"}), ("weather", {"city": "Porto"}))
        running.agent("asks", running.script("asks", calls, a_turn("Last: {{ results.last }}")))
        notes = a_turn("May I?", (NOTE, {"text": "x"}), (LOOK, {"text": "y"}))
        policies = {NOTE: {"decision": "require_approval"}}
        script = running.script("notes", notes, a_turn("{{ results.mcp__watched__note }}"))
        running.agent("notes", script, mcp_servers=["watched"], tool_policies=policies)
        running.agent("shaped", running.script("shaped", a_turn("Lisbon."), a_turn('Here: {"city": "Lisbon"}')))
        running.agent("long", running.script("long", {"text": "The first reason is", "finish_reason": "length"}))
        running.agent("broken", running.script("broken", a_turn("{{ results.last }}")))
        yield running


@pytest.fixture
def connect(service: Service) -> Iterator[Connect]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(openai_client(service, **options))


def run_of(service: Service, response: Any) -> Json:
    return service.call("GET", f"/runs/run_{response.id.removeprefix('resp_')[:26]}")


def outputs(response: Any, text: str = "sun") -> list[Json]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call in calls]


def test_a_response_repeats_its_request_and_is_read_again(service: Service, connect: Connect) -> None:
    client = connect()
    response = client.responses.create(
        model="told", input="hello", instructions="Be kind.", metadata={"a": "b"}, temperature=0.5, max_output_tokens=99
    )
    assert (response.output_text, response.status) == ("You said: hello", "completed")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
    assert (response.instructions, response.metadata, response.temperature) == ("Be kind.", {"a": "b"}, 0.5)
    assert (response.model, response.max_output_tokens) == ("told", 99)
    assert client.responses.retrieve(response.id) == response
    [item] = client.responses.input_items.list(response.id).data
    assert (item.role, item.content[0].text) == ("user", "hello")


def test_input_items_become_history_and_input_with_images_and_files(service: Service, connect: Connect) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Faro"}'}
    items = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "The weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And here?"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="},
            ],
        },
    ]
    response = connect().responses.create(model="told", input=items)
    run = run_of(service, response)
    assert [part["type"] for part in run["input"]] == ["text", "image", "file"]
    messages = service.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    [item] = connect().responses.input_items.list(response.id).data
    assert [part.type for part in item.content] == ["input_text", "input_image", "input_file"]


def test_a_response_after_another_continues_its_thread_and_a_second_one_branches_off(
    service: Service, connect: Connect
) -> None:
    client = connect()
    first = client.responses.create(model="told", input="one")
    second = client.responses.create(model="told", input="two", previous_response_id=first.id)
    branch = client.responses.create(model="told", input="other", previous_response_id=first.id)
    assert second.previous_response_id == branch.previous_response_id == first.id
    threads = [run_of(service, response)["thread_id"] for response in (first, second, branch)]
    assert threads[0] == threads[1] != threads[2]
    told = service.call("GET", f"/threads/{threads[2]}/messages")["data"]
    texts = [message["content"][0]["text"] for message in told]
    assert texts == ["one", "You said: one", "other", "You said: other"]


@pytest.mark.requirement("E2")
def test_a_stream_cut_at_any_number_continues_with_the_identical_rest(service: Service, connect: Connect) -> None:
    client = connect()
    for model, tools in (("looks", [WATCHED]), ("asks", [WEATHER]), ("notes", [])):
        events = list(client.responses.create(model=model, input="go", stream=True, tools=tools))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert events[-1].type == "response.completed"
        identifier = events[-1].response.id
        assert client.responses.retrieve(identifier) == events[-1].response
        for number in range(-1, len(events)):
            rest = list(client.responses.retrieve(identifier, stream=True, starting_after=number))
            assert rest == events[number + 1 :]


def test_tools_of_the_service_are_items_and_the_library_assembles_them(connect: Connect) -> None:
    client = connect()
    with client.responses.stream(model="looks", input="look", tools=[WATCHED]) as stream:
        final = stream.get_final_response()
    listed, _, call, _ = final.output
    assert [item.type for item in final.output] == ["mcp_list_tools", "message", "mcp_call", "message"]
    assert "look" in [tool.name for tool in listed.tools]
    assert (call.server_label, call.name, call.output, call.status) == ("watched", "look", "look says x", "completed")


def test_outputs_of_functions_resume_the_run_as_the_next_response(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    asked = client.responses.create(model="asks", input="weather?", tools=[WEATHER])
    assert [json.loads(item.arguments) for item in asked.output] == [{"city": "Lisbon"}, {"city": "Porto"}]
    for wrong in ("and?", outputs(asked)[:1]):
        with pytest.raises(openai.BadRequestError, match=r"call_\w+"):
            client.responses.create(model="asks", input=wrong, previous_response_id=asked.id)
    answered = client.responses.create(model="asks", input=outputs(asked), previous_response_id=asked.id)
    assert (answered.output_text, answered.previous_response_id) == ("Last: sun", asked.id)
    assert client.responses.create(model="asks", input=outputs(asked)) == answered
    assert client.responses.retrieve(asked.id) == asked
    assert client.responses.retrieve(answered.id) == answered
    given = client.responses.input_items.list(answered.id, order="asc", limit=1)
    assert [(item.type, item.output) for item in given] == [("function_call_output", "sun")] * 2


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("approve", "said"), [(True, "note says x"), (False, "Not that.")])
def test_an_approval_is_requested_and_answered_by_items(connect: Connect, approve: bool, said: str) -> None:
    client = connect()
    asked = client.responses.create(model="notes", input="note it")
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    assert (request.server_label, request.name, json.loads(request.arguments)) == ("watched", "note", {"text": "x"})
    decision = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    decided = client.responses.create(
        model="notes", input=[{**decision, "reason": "Not that."}], previous_response_id=asked.id
    )
    calls_asked = {item.name: item.approval_request_id for item in decided.output if item.type == "mcp_call"}
    assert calls_asked == {"note": request.id, "look": None}
    assert said in decided.output_text
    calls = {item.name: item.status for item in decided.output if item.type == "mcp_call"}
    assert calls == {"note": "completed" if approve else "failed", "look": "completed"}


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("first", "approve"), [(True, True), (False, True), (True, False), (False, False)])
def test_a_response_after_an_approval_is_in_the_background_if_its_own_request_says_so(
    connect: Connect, first: bool, approve: bool
) -> None:
    client = connect()
    asked = client.responses.create(model="notes", input="note it", background=first)
    list(client.responses.retrieve(asked.id, stream=True))
    asked = client.responses.retrieve(asked.id)
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    decided = client.responses.create(
        model="notes", input=[answer], previous_response_id=asked.id, background=not first
    )
    assert (asked.background, decided.background) == (first, not first)
    for response in (asked, decided):
        assert client.responses.retrieve(response.id).background is response.background


@pytest.mark.requirement("C3")
def test_a_key_that_may_not_decide_is_refused_and_the_run_still_waits(service: Service, connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    runner = service.call("POST", "/api-keys", {"name": "r", "role": "runner"})["token"]
    client = connect(api_key=runner)
    asked = client.responses.create(model="notes", input="note it")
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    with pytest.raises(openai.PermissionDeniedError):
        client.responses.create(model="notes", input=[answer], previous_response_id=asked.id)
    assert run_of(service, asked)["status"] == "requires_action"


def test_servers_are_named_by_their_label_and_their_tools_narrowed(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    narrowed = client.responses.create(model="looks", input="go", tools=[{**WATCHED, "allowed_tools": ["note"]}])
    assert [tool.name for tool in narrowed.output[0].tools] == ["note"]
    [call] = [item for item in narrowed.output if item.type == "mcp_call"]
    assert (call.name, call.status) == ("look", "failed")
    for tool in (
        {**WATCHED, "server_label": "elsewhere"},
        {**WATCHED, "server_url": "https://example.com/mcp"},
        {**WATCHED, "require_approval": "always"},
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="looks", input="go", tools=[tool])
        assert refused.value.code == "unsupported_parameter"


def test_an_answer_by_a_schema_is_the_object_alone(connect: Connect) -> None:
    wanted = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}
    response = connect().responses.create(model="shaped", input="where?", text=wanted)
    assert json.loads(response.output_text) == {"city": "Lisbon"}
    assert response.text.format.name == "city"


def test_runs_without_a_whole_answer_say_why(connect: Connect) -> None:
    client = connect()
    cut = client.responses.create(model="long", input="why?")
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    failed = client.responses.create(model="broken", input="go")
    assert (failed.status, failed.error.code) == ("failed", "server_error")
    assert failed.error.message.startswith("model_rejected: ")


def test_a_response_in_the_background_is_followed_cancelled_and_deleted(tmp_path: Path) -> None:
    openai = pytest.importorskip("openai")
    gate = tmp_path / "gate"
    with serving(tmp_path / "home") as service, openai_client(service) as client:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", ("mcp__watched__held_look", {"text": "x", "gate": str(gate)}))
        service.agent("held", service.script("held", held, a_turn("Found.")), mcp_servers=["watched"])
        begun = client.responses.create(model="held", input="go", background=True)
        assert (begun.status in ("queued", "in_progress"), begun.background) == (True, True)
        until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
        with pytest.raises(openai.ConflictError):
            client.responses.delete(begun.id)
        client.responses.cancel(begun.id)
        until(lambda: client.responses.retrieve(begun.id).status == "cancelled", what="the end")
        client.responses.delete(begun.id)
        for path in (client.responses.retrieve, client.responses.cancel, client.responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                path(begun.id)


def test_a_response_that_is_not_to_be_stored_is_not_read_again(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    response = client.responses.create(model="told", input="hello", store=False)
    assert response.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="told", input="and?", previous_response_id=response.id)


def test_nothing_is_found_under_ids_that_are_none(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    known = client.responses.create(model="told", input="hello")
    for identifier in ("resp_1", "run_1", f"{known.id}_1", f"{known.id}_0", f"{known.id[:-1]}!"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(identifier)


@pytest.mark.requirement("E2", "E4")
def test_a_client_reads_on_after_a_kill_and_misses_nothing(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    seen: list[Any] = []
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", ("mcp__watched__held_look", {"text": "x", "gate": str(gate)}))
        service.agent("held", service.script("held", held, a_turn("Found.")), mcp_servers=["watched"])
        with openai_client(service) as client, suppress(Exception):  # the connection breaks
            for event in client.responses.create(model="held", input="go", stream=True):
                seen.append(event)
                if event.type == "response.mcp_call_arguments.done":
                    until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
                    service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home) as again, openai_client(again) as client:
        identifier = seen[0].response.id
        last = seen[-1].sequence_number
        rest = list(client.responses.retrieve(identifier, stream=True, starting_after=last))
        assert rest[-1].type == "response.completed"
        assert rest[-1].response.output_text == "Looking.Found."
        assert [*seen, *rest] == list(client.responses.retrieve(identifier, stream=True))


def test_answers_have_the_properties_of_the_types(service: Service, connect: Connect) -> None:
    """All that the library's types have, but for deltas, which have what is new."""
    client = connect()
    asked = client.responses.create(model="asks", input="weather?", tools=[WEATHER])
    looked = client.responses.create(model="looks", input="look", tools=[WATCHED])
    waits = client.responses.create(model="notes", input="note it")
    chat = client.chat.completions.create(model="told", messages=[{"role": "user", "content": "hello"}])
    chunks = client.chat.completions.create(model="looks", messages=[{"role": "user", "content": "look"}], stream=True)
    events = client.responses.create(model="looks", input="look", stream=True)
    conversation = client.conversations.create()
    client.responses.create(model="looks", input="look", conversation=conversation.id)
    items = client.conversations.items.list(conversation.id)
    given = [asked, looked, waits, chat, *chunks, *events, conversation, *items, *client.models.list()]
    answers = [model for value in given for model in _models(value) if type(model).__name__ != "ChoiceDelta"]
    missing = [
        f"{type(model).__name__}.{name}"
        for model in answers
        for name in type(model).model_fields.keys() - model.model_fields_set
    ]
    known = sum(len(type(model).model_fields) for model in answers)
    assert len(missing) <= known * 0.05, f"{len(missing)} of {known}: {sorted(set(missing))}"


def _models(value: Any) -> Iterator[Any]:
    if hasattr(value, "model_fields_set"):
        yield value
        for name in type(value).model_fields:
            yield from _models(getattr(value, name))
    elif isinstance(value, list):
        for one in value:
            yield from _models(one)
