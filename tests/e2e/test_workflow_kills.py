"""Workflows of parallel branches and joins whose process is killed, again and again: what had
finished is not done again."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving

STORY = "tangle"
TAKEN_OVER_S = 120.0
"""A killed worker's lease lapses in 15 s."""
HELD_S = 600
"""What is held is not answered, nor given up, before the process that waits for it is killed."""
NAMES = ("a1", "b1", "c1", "a2", "b2", "all", "end")


class Ledger(ThreadingHTTPServer):
    """Counts what is sent to it by path. What is held is answered once it is let go."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Entry)
        self.daemon_threads = True
        self.sent: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.open = threading.Condition()
        self.held: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, name: str) -> None:
        with self.open:
            self.sent[name] += 1
            self.open.wait_for(lambda: name not in self.held, HELD_S)

    def has(self, names: tuple[str, ...], counts: Mapping[str, int]) -> Callable[[], bool]:
        """Whether these have been sent so often."""
        return lambda: all(self.sent[name] == counts[name] for name in names)

    def hold(self, *names: str) -> None:
        """Hold these and let all others go."""
        with self.open:
            self.held = set(names)
            self.open.notify_all()


class _Entry(BaseHTTPRequestHandler):
    server: Ledger

    def do_POST(self) -> None:
        name = self.path.strip("/")
        self.server.take(name)
        body = json.dumps({"name": name}).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # whoever asked has been killed

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def ledger() -> Iterator[Ledger]:
    server = Ledger()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.hold()
        server.shutdown()
        server.server_close()
        thread.join(5)


def tangle(url: str, *, idempotent: bool = True) -> Json:
    """Three branches, of which two meet in `all`, one has an agent, and the quickest two in
    `first`."""

    def sent(name: str, **config: object) -> Json:
        request = {"url": f"{url}/{name}", "method": "POST", "idempotent": idempotent, "timeout_s": HELD_S, **config}
        return {"id": name, "kind": "http_request", "config": request}

    ways = [
        "start a1",
        "start b1",
        "start c1",
        "a1 a2",
        "b1 poet",
        "poet b2",
        "a2 all",
        "b2 all",
        "c1 first",
        "all first",
        "first end",
    ]
    return {
        "name": STORY,
        "nodes": [
            {"id": "start", "kind": "entrypoint"},
            sent("a1"),
            sent("b1"),
            sent("c1"),
            sent("a2"),
            {"id": "poet", "kind": "agent", "config": {"agent": "poet", "input": "A line."}},
            sent("b2"),
            sent("all"),
            {"id": "first", "kind": "transform", "config": {"expression": "'met'", "join": "all"}},
            sent("end"),
        ],
        "edges": [dict(zip(("source", "target"), way.split(), strict=True)) for way in ways],
    }


def prepared(service: Service, url: str, *, idempotent: bool = True) -> str:
    service.agent("poet", service.script("poet", a_turn("High stands the minster.")))
    service.call("POST", "/workflows", tangle(url, idempotent=idempotent), expect=201)
    return str(service.call("POST", f"/workflows/{STORY}/runs", {}, expect=202)["id"])


def statuses(service: Service, run_id: str) -> dict[str, str]:
    run = service.call("GET", f"/workflow-runs/{run_id}")
    return {node["node_id"]: node["status"] for node in run["nodes"]}


def finished(service: Service, run_id: str, *names: str) -> Callable[[], bool]:
    return lambda: all(statuses(service, run_id).get(name) == "succeeded" for name in names)


def ended(service: Service, run_id: str) -> Json:
    until(
        lambda: service.call("GET", f"/workflow-runs/{run_id}")["status"] in ("completed", "failed"),
        what="the workflow run has ended",
    )
    return service.call("GET", f"/workflow-runs/{run_id}")


STAGES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("a1", "b1", "c1"), ("start",)),
    (("b1", "a2"), ("a1", "c1")),
    (("b2",), ("a2", "poet")),
    (("all",), ("b2",)),
    (("end",), ("first",)),
)
"""What is held when the process is killed, and what has finished by then and was not before."""


def assert_in_order(service: Service, run_id: str) -> None:
    """Numbers without a gap, and of each node one end."""
    with service.client.stream("GET", f"/workflow-runs/{run_id}/stream") as stream:
        told = [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: ")]
    assert [event["seq"] for event in told[:-1]] == list(range(1, len(told)))
    ends = Counter(event["node_id"] for event in told if event.get("type") == "node.succeeded")
    assert set(ends.values()) == {1}


@pytest.mark.timeout(600)
@pytest.mark.requirement("F4")
def test_no_finished_node_is_done_again_however_often_the_service_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ledger() as sent:
        run_id, under_way = "", Counter(dict.fromkeys(NAMES, 1))
        for held, done in STAGES:
            sent.hold(*held)
            with serving(home) as service:
                run_id = run_id or prepared(service, sent.url)
                until(sent.has(held, under_way), TAKEN_OVER_S, what=f"{held} are under way")
                until(finished(service, run_id, *done), what=f"{done} have finished")
                service.process.kill()
                service.process.wait(60)
            under_way.update(held)
        sent.hold()
        with serving(home) as service:
            run = ended(service, run_id)
            assert (run["status"], run["attempt"]) == ("completed", len(STAGES) + 1), run
            assert run["output"]["body"] == {"name": "end"}
            # Each was sent once, and once more for each time that it was under way when the process
            # was killed.
            assert sent.sent == under_way
            assert len(service.call("GET", "/runs")["data"]) == 1
            assert_in_order(service, run_id)


@pytest.mark.timeout(600)
@pytest.mark.requirement("F4")
def test_what_may_have_had_its_effect_when_the_service_was_killed_is_not_sent_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ledger() as sent:
        sent.hold("b1", "a2")
        with serving(home) as service:
            run_id = prepared(service, sent.url, idempotent=False)
            until(lambda: sent.sent["b1"] == sent.sent["a2"] == 1, what="both are under way")
            until(finished(service, run_id, "a1", "c1"), what="the others have finished")
            service.process.kill()
            service.process.wait(60)
        sent.hold()
        with serving(home) as service:
            run = ended(service, run_id)
            assert (run["status"], run["error"]["code"]) == ("failed", "outcome_unknown"), run
            assert run["failed_node"] in ("b1", "a2")
            nodes = {node["node_id"]: node for node in run["nodes"]}
            for name in ("b1", "a2"):
                assert (nodes[name]["status"], nodes[name]["error"]["code"]) == ("failed", "outcome_unknown")
            assert {nodes[name]["status"] for name in ("a1", "c1")} == {"succeeded"}
            assert sent.sent == Counter(a1=1, b1=1, c1=1, a2=1)


@pytest.mark.timeout(600)
@pytest.mark.requirement("E4", "E6", "F4")
def test_workers_that_are_killed_leave_their_workflows_to_others(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with ledger() as sent, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        api = processes.serve("api", "--no-worker")
        under_way = Counter(dict.fromkeys(NAMES, 1))
        run_id = prepared(api, sent.url)
        for number, (held, done) in enumerate(STAGES[1:3]):
            sent.hold(*held)
            doomed = processes.work(f"worker-{number}")
            until(sent.has(held, under_way), TAKEN_OVER_S, what=f"{held} are under way")
            until(finished(api, run_id, *done), what=f"{done} have finished")
            doomed.kill()
            under_way.update(held)
        sent.hold()
        for number in (1, 2):
            processes.work(f"last-{number}")
        run = ended(api, run_id)
        assert (run["status"], run["attempt"]) == ("completed", 3), run
        assert sent.sent == under_way
        assert len(api.call("GET", "/runs")["data"]) == 1
        assert_in_order(api, run_id)
