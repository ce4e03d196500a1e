"""An agent that searches the web and reads a page, in the real service over the real child
processes."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.dragoman_here import DragomanHere

pytestmark = pytest.mark.timeout(300)

ARTICLE = "Herons stand still for a long time before they strike, and they strike in the fraction of a second. " * 5
RESULTS = """<html><body><div class="result__body links_main"><h2><a href="{page}">About herons</a></h2>
<a class="result__snippet" href="{page}">All there is to know.</a></div></body></html>"""


class Web(BaseHTTPRequestHandler):
    """The search engine at /html/, a page everywhere else."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._send(RESULTS.format(page=f"http://{self.headers['host']}/herons"))

    def do_GET(self) -> None:
        self._send(f"<html><head><title>Herons</title></head><body><article><p>{ARTICLE}</p></article></body></html>")

    def _send(self, page: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.requirement("D2", "D3", "B16")
def test_an_agent_searches_and_reads_what_it_found_and_is_kept_from_private_addresses(tmp_path: Path, web: str) -> None:
    dragoman = DragomanHere(tmp_path / "home")
    model = dragoman.script(
        "herons",
        {"text": "Searching.", "calls": [{"tool": "internet_search", "arguments": {"query": "herons"}}]},
        {
            "text": "Reading.",
            "calls": [
                {"tool": "website_content", "arguments": {"url": "{{ results.internet_search /results/0/url }}"}},
                {"tool": "website_content", "arguments": {"url": "http://192.168.0.1/router"}},
            ],
        },
        {"text": "Done: {{ results.last }}"},
    )
    agent = tmp_path / "agent.yaml"
    agent.write_text(f"name: reader\nmodel: {model}\ntools: [website_content, internet_search]\n", encoding="utf-8")

    dragoman.run("agent", "apply", str(agent))
    listed = dragoman.run("tool", "list", "--json").json["data"]
    done = dragoman.run("run", "Herons?", "--agent", str(agent), DRAGOMAN_DUCKDUCKGO_BASE_URL=web)
    thread_id = next(word for word in done.err.split() if word.startswith("thr_"))
    transcript = dragoman.run("thread", "show", thread_id).out

    assert isinstance(listed, list)
    assert {"website_content", "internet_search"} <= {tool["name"] for tool in listed if isinstance(tool, dict)}
    assert "← internet_search done in" in done.err
    assert "All there is to know." in transcript
    assert "Title: Herons" in transcript
    assert f"URL: {web}/herons" in transcript
    assert "they strike in the fraction of a second." in transcript
    assert "The address of 192.168.0.1 is not public, so it is not requested." in transcript
    assert "EGRESS_ALLOW" not in transcript
