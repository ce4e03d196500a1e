"""Chat completions as OpenAI's own library for Python has them."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("X2"), pytest.mark.timeout(240)]

Connect = Callable[..., Any]
NOTE = "mcp__watched__note"
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def openai_client(service: Service, **options: Any) -> Any:
    """OpenAI's client, which knows nothing of Dragoman but its address and a key. Its strict
    validation holds every answer to the types of the library."""
    openai = pytest.importorskip("openai")
    settings = {"base_url": f"{service.url}/openai/v1", "api_key": service.key, "max_retries": 0, **options}
    return openai.OpenAI(_strict_response_validation=True, **settings)


@pytest.fixture
def connect(service: Service) -> Iterator[Connect]:
    """Clients that are closed after the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(openai_client(service, **options))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("chat") / "home") as running:
        running.watched_server("watched", trusted=True)
        told = running.script(
            "told", {"text": "You said: {{ user }}", "usage": {"input_tokens": 7, "output_tokens": 3}}
        )
        running.agent("told", told)
        looks = running.script("looks", a_turn("Looking.", ("mcp__watched__look", {"text": "x"})), a_turn("Found."))
        running.agent("looks", looks, mcp_servers=["watched"])
        calls = a_turn("", ("weather", {"city": "Lisbon"}), ("weather", {"city": "Porto"}))
        first = {**calls, "when": {"has_results": False}}
        asks = running.script("asks", first, {"text": "Last: {{ results.last }}", "when": {"has_results": True}})
        running.agent("asks", asks)
        notes = running.script("notes", a_turn("May I?", (NOTE, {"text": "x"})), a_turn("Noted."))
        policies = {NOTE: {"decision": "require_approval"}}
        running.agent("notes", notes, mcp_servers=["watched"], tool_policies=policies)
        running.agent("long", running.script("long", {"text": "The first reason is", "finish_reason": "length"}))
        running.agent("shaped", running.script("shaped", a_turn("Lisbon."), a_turn('Here: {"city": "Lisbon"}')))
        running.agent("broken", running.script("broken", a_turn("{{ results.last }}")))
        yield running


def said_by(completion: Any) -> str:
    return str(completion.choices[0].message.content)


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def test_agents_are_the_models(connect: Connect) -> None:
    client = connect()
    assert {"told", "looks", "asks"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("told").owned_by == "dragoman"


def test_an_answer_is_the_same_whole_and_streamed_and_counts_its_tokens(connect: Connect) -> None:
    client = connect()
    messages = [{"role": "system", "content": "Be kind."}, user("hello")]
    whole = client.chat.completions.create(model="told", messages=messages)
    assert (said_by(whole), whole.choices[0].finish_reason) == ("You said: hello", "stop")
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (7, 3, 10)
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model="told", messages=messages, stream=True, stream_options=options))
    *others, last = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in others) == "You said: hello"
    assert others[0].choices[0].delta.role == "assistant"
    assert others[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage) == ([], whole.usage)
    assert len({chunk.id for chunk in chunks}) == 1


def test_tools_of_the_service_are_executed_inside_and_all_turns_are_the_answer(connect: Connect) -> None:
    client = connect()
    whole = client.chat.completions.create(model="looks", messages=[user("look")])
    assert said_by(whole) == "Looking.\n\nFound."
    with client.chat.completions.stream(model="looks", messages=[user("look")]) as stream:
        assert said_by(stream.get_final_completion()) == "Looking.\n\nFound."


def test_functions_of_the_client_come_out_and_their_results_come_back_into_the_same_run(connect: Connect) -> None:
    client = connect()
    messages = [user("the weather?")]
    asked = client.chat.completions.create(model="asks", messages=messages, tools=[WEATHER])
    assert asked.choices[0].finish_reason == "tool_calls"
    calls = asked.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Lisbon"}, {"city": "Porto"}]
    messages.append(asked.choices[0].message.model_dump(exclude_none=True))
    results = [{"role": "tool", "tool_call_id": call.id, "content": f"sun {index}"} for index, call in enumerate(calls)]
    answered = client.chat.completions.create(model="asks", messages=[*messages, *results], tools=[WEATHER])
    assert said_by(answered) == "Last: sun 1"
    again = client.chat.completions.create(model="asks", messages=[*messages, *results], tools=[WEATHER])
    assert (again.id, said_by(again)) == (asked.id, "Last: sun 1")
    streamed = client.chat.completions.create(model="asks", messages=[user("weather")], tools=[WEATHER], stream=True)
    deltas = [call for chunk in streamed for call in chunk.choices[0].delta.tool_calls or ()]
    assert [(call.index, call.function.name) for call in deltas] == [(0, "weather"), (1, "weather")]


def test_a_missing_result_is_named_and_nothing_is_resumed(connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect()
    messages = [user("the weather?")]
    asked = client.chat.completions.create(model="asks", messages=messages, tools=[WEATHER])
    first, second = asked.choices[0].message.tool_calls
    messages.append(asked.choices[0].message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": first.id, "content": "sun"})
    with pytest.raises(openai.BadRequestError, match=second.id):
        client.chat.completions.create(model="asks", messages=messages, tools=[WEATHER])


def test_a_conversation_stays_on_its_thread_and_a_branch_of_it_gets_one_with_its_history(
    service: Service, connect: Connect
) -> None:
    client = connect()
    messages = [user("one")]
    first = client.chat.completions.create(model="told", messages=messages)
    messages += [{"role": "assistant", "content": said_by(first)}, user("two")]
    second = client.chat.completions.create(model="told", messages=messages)
    branch = client.chat.completions.create(model="told", messages=[*messages[:2], user("another two")])
    threads = [run_of(service, completion)["thread_id"] for completion in (first, second, branch)]
    assert threads[0] == threads[1] != threads[2]
    texts = [
        [(message["role"], message["content"][0]["text"]) for message in thread_messages(service, thread_id)]
        for thread_id in threads[1:]
    ]
    assert texts[0][2:] == [("user", "two"), ("assistant", "You said: two")]
    assert texts[1] == [*texts[0][:2], ("user", "another two"), ("assistant", "You said: another two")]


def test_calls_and_results_of_another_service_in_a_history_are_kept(service: Service, connect: Connect) -> None:
    call = {"id": "call_theirs", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Faro"}'}}
    messages = [
        user("the weather?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_theirs", "content": "rain"},
        {"role": "assistant", "content": "It rains."},
        user("and now?"),
    ]
    answered = connect().chat.completions.create(model="told", messages=messages)
    kept = thread_messages(service, run_of(service, answered)["thread_id"])
    assert [message["role"] for message in kept] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert kept[2]["content"][0]["result"] == "rain"


def test_an_approval_ends_the_answer_with_a_link_and_the_next_message_continues_it(
    service: Service, connect: Connect
) -> None:
    client = connect()
    messages = [user("note it")]
    asked = client.chat.completions.create(model="notes", messages=messages)
    assert asked.choices[0].finish_reason == "stop"
    run = run_of(service, asked)
    assert f"{service.url}/console/runs/{run['id']}" in said_by(asked)
    messages += [{"role": "assistant", "content": said_by(asked)}, user("well?")]
    still = client.chat.completions.create(model="notes", messages=messages)
    assert still.id == asked.id
    [pending] = run_of(service, asked)["pending"]
    service.call("POST", f"/approvals/{pending['approval_id']}", {"decision": "approve"})
    assert service.wait(run["id"])["run"]["output"] == "Noted."
    messages += [{"role": "assistant", "content": said_by(still)}, user("now?")]
    then = run_of(service, client.chat.completions.create(model="notes", messages=messages))
    assert then["thread_id"] == run["thread_id"]
    assert [part["text"] for part in then["input"]] == ["well?", "now?"]


def test_an_answer_by_a_schema_is_the_object_alone(connect: Connect) -> None:
    client = connect()
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    whole = client.chat.completions.create(model="shaped", messages=[user("where?")], response_format=wanted)
    assert json.loads(said_by(whole)) == {"city": "Lisbon"}
    streamed = client.chat.completions.create(
        model="shaped", messages=[user("where?")], response_format=wanted, stream=True
    )
    assert json.loads("".join(chunk.choices[0].delta.content or "" for chunk in streamed)) == {"city": "Lisbon"}


def test_images_and_files_are_parts_of_the_input(service: Service, connect: Connect) -> None:
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}},
    ]
    answered = connect().chat.completions.create(model="told", messages=[user(parts)])
    kept = run_of(service, answered)["input"]
    assert [(part["type"], part.get("media_type")) for part in kept] == [
        ("text", None),
        ("image", "image/png"),
        ("file", "text/plain"),
    ]


def test_an_answer_that_is_cut_says_so(connect: Connect) -> None:
    cut = connect().chat.completions.create(model="long", messages=[user("why?")])
    assert (said_by(cut), cut.choices[0].finish_reason) == ("The first reason is", "length")


def test_errors_are_those_of_the_library(service: Service, connect: Connect) -> None:
    openai = pytest.importorskip("openai")
    client = connect(max_retries=2)
    hello = [user("hello")]
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="nothing", messages=hello)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.AuthenticationError) as denied:
        connect(api_key="sk-wrong").models.list()
    assert denied.value.code == "invalid_api_key"
    for name, value in (("n", 2), ("logprobs", True), ("tool_choice", "required"), ("frequency_penalty", 1)):
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="told", messages=hello, **{name: value})
        assert (refused.value.code, refused.value.param) == ("unsupported_parameter", name)
    before = len(service.call("GET", "/runs?limit=500")["data"])
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="broken", messages=hello)
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="broken", messages=hello, stream=True))
    assert len(service.call("GET", "/runs?limit=500")["data"]) == before + 2, "a failed run was started again"


def test_a_repeated_request_of_the_library_is_answered_by_the_run_of_the_first(connect: Connect) -> None:
    client = connect()
    first = client.chat.completions.create(model="told", messages=[user("only once")])
    again = client.chat.completions.create(
        model="told", messages=[user("only once")], extra_headers={"x-stainless-retry-count": "1"}
    )
    assert again.id == first.id


@pytest.mark.requirement("E4")
def test_a_stream_is_finished_by_another_worker_after_its_own_was_killed(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", ("mcp__watched__held_look", {"text": "x", "gate": str(gate)}))
        service.agent("looks", service.script("held", held, a_turn("Found.")), mcp_servers=["watched"])
        with openai_client(service) as client:
            stream = client.chat.completions.create(model="looks", messages=[user("look")], stream=True)
            assert next(stream).choices[0].delta.role == "assistant"
            until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
            service.stop(signal.SIGKILL)
            ends: list[object] = []
            with suppress(Exception):  # that of the HTTP library, or none
                ends += [chunk.choices[0].finish_reason for chunk in stream]
            assert not any(ends)
    gate.touch()
    with serving(home) as again, openai_client(again) as client:
        repeated = client.chat.completions.create(
            model="looks", messages=[user("look")], extra_headers={"x-stainless-retry-count": "1"}, stream=True
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in repeated) == "Looking.\n\nFound."
        assert len(again.call("GET", "/runs")["data"]) == 1


def run_of(service: Service, completion: Any) -> Json:
    return service.call("GET", f"/runs/run_{completion.id.removeprefix('chatcmpl-')}")


def thread_messages(service: Service, thread_id: str) -> list[Json]:
    return list(service.call("GET", f"/threads/{thread_id}/messages")["data"])
