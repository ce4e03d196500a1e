"""What `/metrics` says of runs that were really made: on PostgreSQL of each process its own, and of
the backlog the same."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import a_turn, serving
from tests.e2e.streams import stream
from tests.integration.mcp.parts import free_port

pytestmark = pytest.mark.timeout(300)

HELD, LOOK = "mcp__watched__held_look", "mcp__watched__look"
MODEL = "gpt-4o-mini"
USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "total_tokens": 1_100_000}


class Page:
    """A page of metrics as a scraper reads it. A family that is not there counts as 0."""

    def __init__(self, address: str) -> None:
        answer = httpx.get(f"{address}/metrics", timeout=60)
        assert answer.status_code == 200
        self._samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]

    def __call__(self, name: str, **labels: str) -> float:
        """The sum over all samples of this name that have these labels."""
        return sum(
            sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def labels(self, name: str) -> set[str]:
        """The names of a metric's labels."""
        return {label for sample in self._samples if sample.name == name for label in sample.labels}


def read_page(address: str) -> Page:
    """The first page for which the database could be read in time."""
    pages: list[Page] = []

    def is_read() -> bool:
        pages.append(Page(address))
        return pages[-1]("dragoman_database_up") == 1

    until(is_read, what="a page with the backlog")
    return pages[-1]


@contextmanager
def a_priced_provider() -> Iterator[str]:
    """An endpoint of OpenAI's chat completions that streams one word and says what it used; its
    base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
            delta = {"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
            chunks = [{**chunk, "choices": [delta]}, {**chunk, "choices": [], "usage": USAGE}]
            lines = [f"data: {json.dumps(part)}\n\n" for part in chunks]
            body = "".join([*lines, "data: [DONE]\n\n"]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.requirement("G2", "E6")
def test_a_run_is_seen_by_each_process_as_far_as_it_had_to_do_with_it(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    gate, port = tmp_path / "gate", free_port()
    worker_at = f"http://127.0.0.1:{port}"
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as processes, processes.running:
        api = processes.serve("api", "--no-worker")
        api.watched_server("watched", trusted=True, timeout_s=150)
        turns = a_turn("I look.", (HELD, {"text": "here", "gate": str(gate)})), a_turn("Seen.")
        model = api.script("looking", *turns, usage={"input_tokens": 70, "output_tokens": 7, "cached_tokens": 20})
        limits = {"tool_timeout_s": 150, "turn_tool_timeout_s": 150}
        api.agent("looker", model, mcp_servers=["watched"], limits=limits)
        run_id = api.start_run("looker")
        before = read_page(api.url)
        assert before("dragoman_runs", status="queued") == 1
        assert before("dragoman_run_queue_age_seconds") > 0
        with stream(api, "GET", f"/runs/{run_id}/stream") as frames:
            processes.work("worker", DRAGOMAN_METRICS_PORT=str(port))
            until(lambda: Page(worker_at)("dragoman_mcp_servers", state="connected") == 1, what="the held call")
            # The backlog is counted once a second.
            for address in (api.url, worker_at):
                until(partial(_is_in_progress, address), what="the run in progress")
            assert Page(worker_at)("dragoman_runs_in_hand") == 1
            assert Page(api.url)("dragoman_runs_in_hand") == 0
            assert Page(api.url)("dragoman_mcp_servers") == 0
            gate.touch()
            assert [frame["event"] for frame in frames][-1] == "end"
        until(lambda: Page(worker_at)("dragoman_runs_ended_total", status="completed") == 1, what="the run's end")
        worker, service = read_page(worker_at), read_page(api.url)
    assert worker("dragoman_model_call_seconds_count", outcome="ok", model=model) == 2
    assert worker("dragoman_tokens_total", kind="input") == 140
    assert worker("dragoman_tokens_total", kind="output") == 14
    assert worker("dragoman_tokens_total", kind="cached") == 40
    assert worker("dragoman_turn_seconds_count") == 2
    assert worker("dragoman_tool_call_seconds_count", type="mcp_tool", outcome="ok") == 1
    assert 0 < worker("dragoman_tool_call_seconds_sum") <= worker("dragoman_run_active_seconds_sum")
    assert worker("dragoman_run_start_delay_seconds_sum") > 0
    assert worker("dragoman_event_lag_seconds_count") == 0
    assert service("dragoman_event_lag_seconds_count") > 5
    assert service("dragoman_http_requests_total", path="/v1/runs", status="202") == 1
    for name in ("dragoman_runs_ended_total", "dragoman_turn_seconds_count", "dragoman_tokens_total"):
        assert service(name) == 0, "what the worker did is not counted twice"
    assert (worker("dragoman_database_up"), service("dragoman_database_up")) == (1, 1)


def _is_in_progress(address: str) -> bool:
    page = Page(address)
    return page("dragoman_runs", status="in_progress") == 1 and page("dragoman_run_queue_age_seconds") == 0


@pytest.mark.requirement("G2", "A10", "B10")
def test_cost_failures_approvals_breakers_and_gateway_calls_are_seen(tmp_path: Path) -> None:
    with a_priced_provider() as base_url:
        settings = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-any"}
        with serving(tmp_path / "home", **settings) as service:
            service.agent("priced", f"openai:{MODEL}")
            priced = service.run("priced")["run"]
            assert priced["status"] == "completed"

            service.watched_server("watched", trusted=True)
            asking = service.script("asking", a_turn("May I?", (LOOK, {"text": "here"})), a_turn("Done."))
            policy = {LOOK: {"decision": "require_approval"}}
            service.agent("asking", asking, mcp_servers=["watched"], tool_policies=policy)
            assert service.run("asking")["run"]["status"] == "requires_action"

            service.watched_server("slow", timeout_s=5, isolation="shared")
            service.call("POST", "/mcp-servers/slow/connect")
            never = ("mcp__slow__held_look", {"text": "here", "gate": str(tmp_path / "never")})
            slow = service.script("slow", a_turn("All at once.", *[never] * 5), a_turn("None came."))
            service.agent("slow", slow, mcp_servers=["slow"])
            assert service.run("slow")["run"]["status"] == "completed"

            free = service.agent("free", asking, mcp_servers=["watched"])
            session = service.call("POST", "/gateway-sessions", {"agent_id": free["id"]})
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            answered = httpx.post(
                session["url"],
                json={**call, "params": {"name": LOOK, "arguments": {"text": "through"}}},
                headers={
                    "Authorization": f"Bearer {session['token']}",
                    "Accept": "application/json, text/event-stream",
                },
                timeout=60,
            )
            assert "through" in answered.text
            # The backlog is counted once a second.
            until(lambda: Page(service.url)("dragoman_approvals_pending") == 1, what="the approval")
            page = Page(service.url)
    assert page("dragoman_cost_usd_total", model=f"openai:{MODEL}") == pytest.approx(priced["usage"]["cost_usd"])
    assert page("dragoman_cost_usd_total") > 0
    assert page("dragoman_tokens_total", model=f"openai:{MODEL}", kind="input") == USAGE["prompt_tokens"]
    assert page("dragoman_runs", status="requires_action") == 1
    assert page("dragoman_tool_call_seconds_count", type="mcp_tool", outcome="error") == 5
    assert page("dragoman_mcp_breakers", state="open") == 1
    assert page("dragoman_gateway_call_seconds_count", type="mcp_tool", outcome="ok") == 1
    assert page("dragoman_runs_ended_total", status="completed") == 2
