"""Lines about a run that is followed."""

import httpx
import pytest

from domain.json_value import JsonObject
from tests.unit.interfaces.cli.fake_service import FakeService, event, run_document, stream_of


def test_a_further_attempt_is_told_with_the_model_that_it_asks() -> None:
    retrying = event(1, "model.retrying", model="other:small", attempt=4, wait_s=2.0)
    run = run_document(output="Noon.")
    service = (
        FakeService()
        .on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
        .on("GET", "/v1/runs/run_1/stream", stream_of(retrying, end="completed"))
        .on("GET", "/v1/runs/run_1", run)
        .on("GET", "/v1/runs/run_1/wait", {"run": run, "messages": []})
    )
    told = service.run("run", "hi", "--agent", "guide").err
    assert "The model call failed; attempt 4 asks other:small in 2 s" in told.splitlines()


@pytest.mark.parametrize("interactive", [False, True])
def test_what_a_server_says_of_its_progress_is_told(interactive: bool) -> None:
    steps: list[JsonObject] = [
        event(1, "tool.started", tool_call_id="call_1", name="mcp__files__copy", params={}),
        event(2, "tool.progress", tool_call_id="call_1", progress=1.0, total=3.0, message="1 of\n3 files"),
        event(3, "tool.progress", tool_call_id="call_1", progress=2.0),
        event(4, "tool.progress", tool_call_id="call_1", progress=3.0, message="all files"),
    ]
    run = run_document(output="Copied.")
    service = (
        FakeService()
        .on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
        .on("GET", "/v1/runs/run_1/events", {"data": [*steps[:2]], "next_cursor": None})
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
        .on("GET", "/v1/runs/run_1/stream", stream_of(*steps, end="completed"))
        .on("GET", "/v1/runs/run_1", run)
        .on("GET", "/v1/runs/run_1/wait", {"run": run, "messages": []})
    )
    started = service.run("run", "hi", "--agent", "guide", interactive=interactive)
    resumed = service.run("run", "resume", "run_1", "--result", "call_1=x", interactive=interactive)
    assert (started.exit_code, resumed.exit_code) == (0, 0)
    told = (started.out + started.err).replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()
    assert [line for line in told if "…" in line] == ["… 1 of 3 files", "… all files"]
    assert "… all files" in resumed.out + resumed.err
