"""A service whose audit entries go to a SIEM: each once and in order, also those from while it was
away, and no secret."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import a_turn, serving
from tests.integration.mcp.parts import free_port

PLANTED = "planted-secret-4f1c9e"


class Siem:
    """Takes events in lines."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for body in self.bodies for line in body.splitlines()]

    def actions(self) -> list[str]:
        return [event["unmapped"]["action"] for event in self.events()]


@contextmanager
def a_siem(port: int) -> Iterator[Siem]:
    siem = Siem()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Authorization"] == "Splunk token-of-the-siem"
            siem.bodies.append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield siem
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def lag_s(url: str) -> float:
    page = httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text
    [line] = [line for line in page.splitlines() if line.startswith("dragoman_siem_lag_seconds ")]
    return float(line.split()[1])


@pytest.mark.timeout(300)
@pytest.mark.requirement("K8")
def test_entries_reach_the_siem_once_and_in_order_also_those_from_before_it_was_there(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "DRAGOMAN_SIEM_URL": f"http://127.0.0.1:{port}/services/collector/raw",
        "DRAGOMAN_SIEM_HEADERS": "authorization=Splunk%20token-of-the-siem",
    }
    with serving(tmp_path / "home", **settings) as service:
        service.call("POST", "/secrets", {"name": "TOKEN", "value": PLANTED})
        service.agent("first", service.script("hello", a_turn(PLANTED)))
        until(lambda: lag_s(service.url) > 0, what="a lag")

        with a_siem(port) as siem:
            service.run("first", PLANTED)
            until(lambda: "run.completed" in siem.actions(), what="the events")
            until(lambda: lag_s(service.url) == 0, what="no lag")

            events = siem.events()
            numbers = [event["metadata"]["sequence"] for event in events]
            assert numbers == list(range(1, len(numbers) + 1))
            assert {"secret.set", "agent.created", "run.started"} <= set(siem.actions())
            assert PLANTED.encode() not in b"".join(siem.bodies)
            before = len(events)
    with a_siem(port) as siem, serving(tmp_path / "home", **settings) as service:
        service.agent("second", "scripted:hello.yaml")
        until(lambda: "agent.created" in siem.actions(), what="the event")

        assert siem.events()[0]["metadata"]["sequence"] == before + 1
