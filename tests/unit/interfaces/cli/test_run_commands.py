"""`dragoman run`, `run-show`, `run-cancel`, `run-resume`."""

import signal
from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.cli import following
from interfaces.cli.answers import read_as
from interfaces.cli.following import Interruption, exit_code_of, follow_to_rest
from interfaces.cli.run_display import EventFields, summary
from interfaces.http.runs.views import RunView
from tests.unit.interfaces.cli.fake_service import (
    FakeService,
    agent_document,
    event,
    message_document,
    problem,
    run_document,
    stream_of,
)

USE: JsonObject = {"type": "tool_use", "id": "call_1", "name": "send_email", "params": {"to": "a@b"}}
ASKING = message_document("assistant", {"type": "text", "text": "Let me see."}, USE)
ANSWERING = message_document("assistant", {"type": "text", "text": "It is noon."})
EVENTS = [
    event(1, "run.queued"),
    event(2, "run.started", attempt=1),
    event(3, "message.delta", message_id="msg_1", text="Let me "),
    event(4, "message.delta", message_id="msg_1", text="see."),
    event(5, "message.completed", message=ASKING),
    event(6, "tool.started", tool_call_id="call_1", name="mcp__time__now", params={"zone": "UTC"}),
    event(7, "tool.executed", tool_call_id="call_1", name="mcp__time__now", duration_ms=12, server="time"),
    event(8, "tool.failed", tool_call_id="call_2", name="nope", error={"code": "tool_not_found", "detail": "no\nsuch tool"}),
    event(9, "message.delta", message_id="msg_2", text="It is noon."),
    event(10, "message.completed", message=ANSWERING),
    event(11, "run.completed"),
]  # fmt: skip


def service_of(run: JsonObject, *events: JsonObject, messages: list[JsonObject] | None = None) -> FakeService:
    status = run["status"]
    assert isinstance(status, str)
    return (
        FakeService()
        .on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
        .on("GET", "/v1/runs/run_1/stream", stream_of(*events, end=status))
        .on("GET", "/v1/runs/run_1", run)
        .on("GET", "/v1/runs/run_1/wait", {"run": run, "messages": [*(messages or [])]})
    )


def test_off_a_terminal_stdout_has_the_answer_and_stderr_what_happened() -> None:
    service = service_of(run_document(output="It is noon."), *EVENTS)
    outcome = service.run("run", "What time is it?", "--agent", "guide")
    assert (outcome.exit_code, outcome.out) == (0, "It is noon.\n")
    assert outcome.err.splitlines() == [
        "run_1 on thr_1",
        "assistant: Let me see.",
        '→ mcp__time__now {"zone": "UTC"}',
        "← mcp__time__now done in 12 ms",
        "← nope failed: no such tool",
        "run_1 completed in 2.5 s · 1 turn · 0 tool calls · 10 + 5 tokens",
    ]
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": "What time is it?"}]
    assert service.requests[0].headers["idempotency-key"]


def test_on_a_terminal_text_is_streamed_once_with_the_calls_between() -> None:
    shown = service_of(run_document(output="It is noon."), *EVENTS).run(
        "run", "hi", "--agent", "guide", interactive=True
    )
    assert shown.exit_code == 0
    places = [
        shown.out.index(text)
        for text in ("Let me see.\n", "mcp__time__now {", "done in 12 ms", "It is noon.", "completed in")
    ]
    assert places == sorted(places)
    assert shown.out.count("It is noon.") == 1


def test_on_a_terminal_a_model_that_does_not_stream_is_shown_too() -> None:
    events = [event(1, "message.completed", message=ANSWERING), event(2, "run.completed")]
    shown = service_of(run_document(), *events).run("run", "hi", "--agent", "guide", interactive=True)
    assert shown.out.count("It is noon.") == 1


def test_on_a_terminal_text_that_is_discarded_is_marked() -> None:
    events = [
        event(1, "message.delta", text="Half a "),
        event(2, "message.discarded", message_id="msg_1", reason="model_unavailable"),
        event(3, "message.completed", message=ANSWERING),
    ]
    shown = service_of(run_document(), *events).run("run", "hi", "--agent", "guide", interactive=True).out
    assert "Half a \n(that was discarded: model_unavailable)" in shown.replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "It is noon." in shown


def test_json_is_the_run_with_its_messages_and_nothing_else_on_stdout() -> None:
    service = service_of(run_document(output="It is noon."), *EVENTS, messages=[ANSWERING])
    outcome = service.run("run", "hi", "--agent", "guide", "--json", interactive=True)
    assert outcome.json == {"run": run_document(output="It is noon."), "messages": [ANSWERING]}
    assert "mcp__time__now" in outcome.err


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (run_document("failed", error={"code": "model_rejected", "detail": "The model refused."}), "model_rejected: The model refused."),
        (run_document("incomplete", incomplete_reason="max_turns", output="So far."), "incomplete (max_turns: the run reached its limit of turns)"),
        (run_document("incomplete", incomplete_reason="refusal", output="So far."), "incomplete (refusal: the model refused to answer)"),
        (run_document("cancelled"), "cancelled"),
        (run_document("halted"), "halted"),
    ],
)  # fmt: skip
def test_a_run_that_did_not_complete_is_exit_code_1_with_the_reason(run: JsonObject, said: str) -> None:
    outcome = service_of(run, event(1, "run.queued")).run("run", "hi", "--agent", "guide")
    assert outcome.exit_code == 1
    assert said in outcome.err
    assert outcome.out == ("So far.\n" if run["output"] else "")


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("interactive", [True, False])
def test_what_the_provider_said_is_told_to_those_who_get_it(interactive: bool) -> None:
    error: JsonObject = {"code": "c", "detail": "No.", "provider_error": {"status": 400, "message": "no gpt-9\nhere"}}
    service = service_of(run_document("failed", error=error), event(1, "run.queued"))
    outcome = service.run("run", "hi", "--agent", "guide", interactive=interactive)
    assert "The model provider said: no gpt-9 here" in outcome.err + outcome.out


@pytest.mark.requirement("D5")
def test_a_run_that_waits_is_exit_code_3_with_the_command_that_goes_on() -> None:
    run = run_document("requires_action", pending=[USE], output="Let me see.", finished_at=None)
    outcome = service_of(run, event(1, "run.requires_action", pending=[USE])).run("run", "hi", "--agent", "guide")
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert 'send_email {"to": "a@b"}' in outcome.err
    assert "dragoman run resume run_1 --result call_1=TEXT" in outcome.err


def test_without_an_agent_one_named_cli_is_made_of_model_and_servers() -> None:
    cli = agent_document(name="cli", id="agt_cli", version=1, mcp_servers=["a", "b"])
    service = service_of(run_document()).on("POST", "/v1/agents", cli)
    outcome = service.run("run", "hi", "--model", "openai:m", "--server", "a", "--server", "b")
    assert outcome.exit_code == 0
    (created,) = service.sent("POST", "/v1/agents")
    assert isinstance(created, dict)
    assert (created["name"], created["model"], created["mcp_servers"]) == ("cli", "openai:m", ["a", "b"])
    assert service.sent("POST", "/v1/runs") == [{"agent_id": "agt_cli", "input": "hi"}]
    assert "Agent cli created: version 1" in outcome.err


def test_the_agent_cli_is_kept_with_just_the_servers_named_now() -> None:
    present = agent_document(name="cli", id="agt_cli", mcp_servers=["old"])
    service = (
        service_of(run_document())
        .on("GET", "/v1/agents/cli", present)
        .on("PATCH", "/v1/agents/agt_cli", present | {"version": 4, "mcp_servers": []})
    )
    assert service.run("run", "hi").exit_code == 0
    assert service.sent("PATCH", "/v1/agents/agt_cli") == [{"mcp_servers": []}]


def test_without_agent_and_model_there_is_nobody_to_answer() -> None:
    outcome = FakeService().run("run", "hi")
    assert outcome.exit_code == 2
    assert "--model" in outcome.err


def test_an_agent_file_is_applied_first(tmp_path: Path) -> None:
    path = tmp_path / "guide.yaml"
    path.write_text("name: guide\nmodel: openai:m\n", encoding="utf-8")
    service = service_of(run_document()).on("POST", "/v1/agents", agent_document(version=1))
    assert service.run("run", "hi", "--agent", str(path), "--model", "openai:n").exit_code == 0
    assert service.sent("POST", "/v1/runs") == [{"agent_id": "agt_1", "input": "hi", "model": "openai:n"}]


def test_a_thread_is_gone_on_with() -> None:
    service = service_of(run_document()).on("POST", "/v1/threads/thr_9/runs", run_document("queued"))
    assert service.run("run", "hi", "--agent", "guide", "--thread", "thr_9").exit_code == 0
    assert service.sent("POST", "/v1/runs") == []


def test_a_refused_run_is_one_line() -> None:
    service = FakeService().on("POST", "/v1/runs", problem(404, "agent_not_found", "There is no agent 'x'."))
    outcome = service.run("run", "hi", "--agent", "x")
    assert (outcome.exit_code, outcome.err) == (1, "Error: There is no agent 'x'. `dragoman agent list` shows all.\n")


class RecordingView:
    """Remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def show(self, kind: str, event: EventFields) -> None:
        self.shown.append(event.seq)

    def remark(self, text: str) -> None:
        pass

    def finish(self, run: RunView) -> None:
        pass


@pytest.mark.requirement("E2")
async def test_a_stream_that_breaks_is_resumed_without_a_gap_or_a_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RECONNECT_PAUSE_S", 0)

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("gone", request=request)

    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1/stream", stream_of(*EVENTS[:4]), broken, stream_of(*EVENTS[:9]))
        .on("GET", "/v1/runs/run_1/stream", stream_of(*EVENTS, end="completed"))
        .on("GET", "/v1/runs/run_1/wait", {"run": run_document(), "messages": []})
    )
    view = RecordingView()
    async with service.connected() as api:
        ending = await follow_to_rest(api, "run_1", view=view, interruption=Interruption())
    assert view.shown == list(range(1, 12))
    assert ending.exit_code == 0


def test_a_stream_that_stays_broken_says_that_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RECONNECT_PAUSE_S", 0)
    service = service_of(run_document())
    service.answers["GET", "/v1/runs/run_1/stream"] = [stream_of(*EVENTS[:2])]
    outcome = service.run("run", "hi", "--agent", "guide")
    assert outcome.exit_code == 1
    assert "dragoman run show run_1" in outcome.err


async def test_a_wish_to_stop_cancels_the_run_and_waits_for_its_end() -> None:
    interruption = Interruption()

    def cancel(request: httpx.Request) -> httpx.Response:
        service.answers["GET", "/v1/runs/run_1/stream"] = [
            stream_of(*EVENTS[:2], event(3, "run.cancelled"), end="cancelled")
        ]
        return httpx.Response(200, json=run_document("in_progress"))

    def stream(request: httpx.Request) -> httpx.Response:
        interruption.ask(signal.SIGINT)
        return stream_of(*EVENTS[:2])(request)

    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1/stream", stream)
        .on("POST", "/v1/runs/run_1/cancel", cancel)
        .on("GET", "/v1/runs/run_1/wait", {"run": run_document("cancelled"), "messages": []})
    )
    view = RecordingView()
    async with service.connected() as api:
        ending = await follow_to_rest(api, "run_1", view=view, interruption=interruption)
    assert view.shown == [1, 2, 3]
    assert ending.exit_code == 130


@pytest.mark.parametrize(
    ("status", "by", "code"),
    [
        ("completed", None, 0),
        ("completed", signal.SIGINT, 0),
        ("requires_action", None, 3),
        ("cancelled", signal.SIGTERM, 143),
        ("cancelled", None, 1),
        ("failed", signal.SIGINT, 1),
    ],
)
def test_the_exit_code_says_how_the_run_stands(status: str, by: signal.Signals | None, code: int) -> None:
    assert exit_code_of(status, by) == code


def test_the_summary_names_the_price_where_there_is_one() -> None:
    usage: JsonObject = {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.01234, "turns": 2, "tool_calls": 1}
    run = read_as(RunView, run_document(usage=usage))
    assert summary(run) == "run_1 completed in 2.5 s · 2 turns · 1 tool call · 1 + 2 tokens · $0.0123"


def test_a_run_is_shown_with_messages_and_events() -> None:
    result: JsonObject = {
        "type": "tool_result",
        "tool_id": "call_1",
        "tool_name": "send_email",
        "result": "x" * 5000,
        "is_error": True,
    }
    service = service_of(run_document(), messages=[ASKING, message_document("tool", result)])
    service.on("GET", "/v1/runs/run_1/events", {"data": [*EVENTS], "next_cursor": None})
    shown = service.run("run", "show", "run_1", "--events").out
    for text in (
        "status    completed"[:6],
        "Let me see.",
        "→ send_email",
        "← send_email failed",
        "3000 more characters",
        "message.delta",
    ):
        assert text in shown
    assert service.run("run", "show", "run_1").out.count("message.delta") == 0
    document = service.run("run", "show", "run_1", "--events", "--json").json
    assert (document["run"], document["events"]) == (run_document(), EVENTS)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [("in_progress", "cancelled", "is: cancelled"), ("completed", "completed", "had already ended: completed")],
)
def test_cancelling_says_what_came_of_it(before: str, after: str, said: str) -> None:
    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1", run_document(before))
        .on("POST", "/v1/runs/run_1/cancel", run_document(before))
        .on("GET", "/v1/runs/run_1/wait", {"run": run_document(after), "messages": []})
    )
    outcome = service.run("run", "cancel", "run_1")
    assert outcome.exit_code == 0
    assert said in outcome.err


@pytest.mark.requirement("D5")
def test_resuming_sends_the_results_and_follows_from_there() -> None:
    service = (
        service_of(run_document(output="Sent."), *EVENTS)
        .on("GET", "/v1/runs/run_1/events", {"data": [*EVENTS[:8]], "next_cursor": None})
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
    )
    outcome = service.run("run", "resume", "run_1", "--result", "call_1=sent=yes", "--result", "call_2=")
    assert (outcome.exit_code, outcome.out) == (0, "Sent.\n")
    assert service.sent("POST", "/v1/runs/run_1/resume") == [
        {"tool_results": [{"tool_call_id": "call_1", "result": "sent=yes"}, {"tool_call_id": "call_2", "result": ""}]}
    ]
    assert "Let me see." not in outcome.err


@pytest.mark.requirement("B4")
def test_questions_of_servers_are_shown_and_answered() -> None:
    form: JsonObject = {"type": "object", "properties": {"colour": {}, "size": {}}}
    asking: list[JsonValue] = [
        {**USE, "elicitation": {"request_id": "1.a", "message": "Which\x1b[2J?", "schema": form}},
        {
            **USE,
            "id": "call_2",
            "elicitation": {"request_id": "1.b", "message": "Sign in.", "url": "https://example.org"},
        },
    ]
    run = run_document("requires_action", pending=asking, finished_at=None)
    outcome = service_of(run, event(1, "run.requires_action", pending=asking)).run("run", "hi", "--agent", "guide")
    assert outcome.exit_code == 3
    assert "asks: Which" in outcome.err
    assert "\x1b[2J" not in outcome.err
    assert "(colour, size)" in outcome.err
    assert "https://example.org" in outcome.err
    assert "run resume run_1 --answer call_1='{…}' --answer call_2=accept" in outcome.err

    service = (
        service_of(run_document(output="Sent."), *EVENTS)
        .on("GET", "/v1/runs/run_1/events", {"data": [*EVENTS[:8]], "next_cursor": None})
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
    )
    outcome = service.run(
        "run-resume",
        "run_1",
        "--answer",
        'call_1={"colour": "red"}',
        "--answer",
        "call_2=decline",
        "--result",
        "call_3=x",
    )
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/runs/run_1/resume") == [
        {
            "tool_results": [
                {"tool_call_id": "call_3", "result": "x"},
                {"tool_call_id": "call_1", "result": {"action": "accept", "content": {"colour": "red"}}},
                {"tool_call_id": "call_2", "result": {"action": "decline"}},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "worker"),
    [
        (["run", "hi", "--agent", "guide"], True),
        (["run", "cancel", "run_1"], True),
        (["run", "resume", "run_1", "--result", "call_1=x"], True),
        (["run", "show", "run_1"], False),
        (["agent", "list"], False),
    ],
)
def test_only_what_moves_runs_has_them_executed_in_its_own_process(arguments: list[str], worker: bool) -> None:
    service = FakeService()
    service.run(*arguments)
    assert service.workers_asked_for == [worker]
