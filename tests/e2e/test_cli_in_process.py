"""The command line without a service: each command opens HOME itself."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from domain.json_value import JsonObject
from tests.e2e.dragoman_process import COMMAND, DEADLINE_S, Dragoman, read_until

pytestmark = pytest.mark.timeout(300)

ASKS_THE_TIME: tuple[JsonObject, ...] = (
    {
        "text": "Let me look.",
        "calls": [
            {"tool": "mcp__time__get_current_time", "arguments": {"timezone": "Europe/Lisbon"}},
            {"tool": "no_such_tool", "arguments": {}},
        ],
    },
    {"text": "Lisbon is in {{ results.mcp__time__get_current_time /timezone }}."},
)


@pytest.fixture
def dragoman(tmp_path: Path) -> Dragoman:
    return Dragoman(tmp_path / "home")


@pytest.mark.requirement("A4", "B3", "B6", "C5")
def test_a_run_with_a_real_mcp_server_from_registration_to_audit(dragoman: Dragoman) -> None:
    dragoman.add_time_server()
    assert "time works." in dragoman.run("mcp", "test", "time").out

    model = dragoman.script("time", *ASKS_THE_TIME)
    done = dragoman.run("run", "What time is it?", "--server", "time", "--model", model)
    assert done.out == "Lisbon is in Europe/Lisbon.\n"
    said = [
        "Agent cli created: version 1",
        "assistant: Let me look.",
        '→ mcp__time__get_current_time {"timezone": "Europe/Lisbon"}',
        "← no_such_tool failed",
        "← mcp__time__get_current_time done in",
        "completed in",
    ]
    assert [text for text in said if text not in done.err] == []

    thread_id = re.findall(r"thr_\w+", done.err)[0]
    transcript = dragoman.run("thread", "show", thread_id).out
    assert "A tool with the name no_such_tool was not found." in transcript
    assert transcript.rstrip().endswith("Lisbon is in Europe/Lisbon.")
    fork = dragoman.run("thread", "fork", thread_id).out.strip()
    of_no_run = re.sub(r"  run_\w+$", "", transcript, flags=re.MULTILINE)
    assert of_no_run != transcript
    assert dragoman.run("thread", "show", fork).out == of_no_run

    audit = dragoman.run("audit", "list", "--action", "tool.*", "--action", "run.*", "--json").json["data"]
    assert isinstance(audit, list)
    actions = [entry["action"] for entry in audit if isinstance(entry, dict)]
    assert {"run.started", "tool.executed", "run.completed"} <= set(actions)


@pytest.mark.requirement("D5", "E2")
def test_a_run_that_waits_outlives_the_process_and_goes_on_in_another(dragoman: Dragoman) -> None:
    model = dragoman.script(
        "mail",
        {
            "text": "A draft.",
            "calls": [{"tool": "send_email", "arguments": {"subject": "s", "body": "b", "to": "a@b.test"}}],
        },
        {"text": "It was {{ results.last }}."},
    )
    agent = dragoman.home.parent / "agent.yaml"
    agent.write_text(f"name: mailer\nmodel: {model}\ntools: [send_email]\n", encoding="utf-8")
    waiting = dragoman.run("run", "Write to Ann.", "--agent", str(agent), exit_code=3)
    assert waiting.out == ""
    found = re.search(r"dragoman run resume (run_\w+) --result (\w+)=TEXT", waiting.err)
    assert found is not None
    run_id, call_id = found.groups()

    assert "is not pending" in dragoman.run("run", "resume", run_id, "--result", "call_x=y", exit_code=2).err
    assert dragoman.run("run", "resume", run_id, "--result", f"{call_id}=sent").out == "It was sent.\n"
    dragoman.run("run", "resume", run_id, "--result", f"{call_id}=again", exit_code=1)

    document = dragoman.run("run", "show", run_id, "--events", "--json").json
    events = document["events"]
    assert isinstance(events, list)
    assert [event["seq"] for event in events if isinstance(event, dict)] == list(range(1, len(events) + 1))


@pytest.mark.requirement("A12")
def test_ctrl_c_cancels_the_run_and_says_so(dragoman: Dragoman) -> None:
    model = dragoman.script("busy", {"calls": [{"tool": "code_execution", "arguments": {"code": "while True: pass"}}]})
    agent = dragoman.home.parent / "agent.yaml"
    agent.write_text(f"name: busy\nmodel: {model}\ntools: [code_execution]\n", encoding="utf-8")
    with dragoman.start("run", "Go.", "--agent", str(agent)) as running:
        shown = read_until(running.stderr, "→ code_execution")
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 130
    assert "Cancelling" in rest
    assert "Traceback" not in rest
    run_id = re.findall(r"run_\w{26}", shown)[0]
    document = dragoman.run("run", "show", run_id, "--json").json
    run, messages = document["run"], document["messages"]
    assert isinstance(run, dict)
    assert isinstance(messages, list)
    assert run["status"] == "cancelled"
    assert [message["role"] for message in messages if isinstance(message, dict)] == ["user", "assistant", "tool"]


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["no-such-command-anywhere"], "not_connected"),
        (["python3", "-c", "import sys; sys.exit('it broke at once')"], "it broke at once"),
    ],
)
def test_a_server_that_does_not_work_fails_its_test_with_the_reason(
    dragoman: Dragoman, command: list[str], code: str
) -> None:
    dragoman.run("mcp", "add", "broken", "--", *command)
    assert code in dragoman.run("mcp", "test", "broken", exit_code=1).out


def test_wrong_input_is_one_line_with_the_place_and_changes_nothing(dragoman: Dragoman) -> None:
    wrong = dragoman.home.parent / "agent.yaml"
    wrong.write_text("name: guide\nmodel: openai\nmax_turns: 3\n", encoding="utf-8")
    refused = dragoman.run("agent", "apply", str(wrong), exit_code=2)
    created, fault = refused.err.splitlines()
    assert "There is no service here" in created
    assert "max_turns: is not a known field; did you mean 'max_running'?" in fault
    assert dragoman.run("agent", "list", "--json").json["data"] == []
    assert len(dragoman.run("mcp", "add", "Bad Slug", "--", "x", exit_code=2).err.splitlines()) == 1
    assert len(dragoman.run("mcp", "list", exit_code=2, DRAGOMAN_PORT="many").err.splitlines()) == 2


def test_on_a_terminal_the_answer_is_streamed_in_colour(dragoman: Dragoman) -> None:
    model = dragoman.script("hello", {"text": "Hello from the script."})
    ours, theirs = pty.openpty()
    environment = {**dragoman.environment, "TERM": "xterm-256color"}
    with subprocess.Popen(
        [COMMAND, "run", "hi", "--model", model], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # Linux's way to say that the other end of a terminal is closed.
        assert running.wait(timeout=DEADLINE_S) == 0
    os.close(ours)
    assert shown.count(b"Hello from the script.") == 1
    assert b"\x1b[32m" in shown
