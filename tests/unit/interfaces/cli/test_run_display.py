"""Lines about a run that is followed."""

import httpx

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
