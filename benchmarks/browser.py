"""How long the page of a long run takes to open in a browser: `python -m benchmarks.browser` (needs
Chromium).

From the start of the navigation until the frame after the last event was drawn, as the browser's
own clock has it.
"""

import os
import shutil
import statistics
import sys
from contextlib import ExitStack
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

from benchmarks.figures import Budget, held
from benchmarks.processes import counterpart
from benchmarks.service import Service, running_service

EVENTS = 5_000
TURNS = 1_000
OPENINGS = 7
_OPENED = Budget(what="the page of a run of 5,000 events opens in", limit=1, unit="s")
_DRAWN = """new PerformanceObserver(list => {
    if (list.getEntriesByName("timeline-drawn").length)
        requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }));
}).observe({entryTypes: ["mark"]});"""

_WHEN = """() => new Promise(done => {
    const look = () => window.drawnAt === undefined ? setTimeout(look, 5) : done(window.drawnAt);
    look();
})"""


def a_long_run(service: Service, mcp_port: int) -> tuple[str, int]:
    """A run of as many events as are wanted, and how many it has."""
    service.post("/mcp-servers", {"slug": "bench", "kind": "http", "url": f"http://127.0.0.1:{mcp_port}/mcp"})
    limits = {"max_turns": TURNS + 1, "max_tool_calls": TURNS}
    service.post("/agents", {"name": "long", "model": "openai:bench", "mcp_servers": ["bench"], "limits": limits})
    run_id = str(service.post("/runs", {"agent": "long", "input": "go"})["id"])
    request = Request(f"{service.url}/v1/runs/{run_id}/stream", headers={"Authorization": f"Bearer {service.key}"})
    with urlopen(request, timeout=60) as stream:  # until the run has ended
        events = stream.read()
    if b"run.completed" not in events:
        raise SystemExit("the run did not complete")
    return run_id, events.count(b"\nid: ") + 1


def opened_s(page: Page, url: str) -> float:
    """One opening."""
    page.goto(url)
    return float(page.evaluate(_WHEN)) / 1000


def measure() -> list[str]:
    """The lines of the report; none without a browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return ["The page of a long run was not measured: there is no Chromium here."]
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", str(TURNS)))
        mcp_port = stack.enter_context(counterpart("mcp"))
        settings = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        service = stack.enter_context(running_service(settings))
        run_id, events = a_long_run(service, mcp_port)
        if events < EVENTS:
            raise SystemExit(f"the run has {events} events only")
        playwright = stack.enter_context(sync_playwright())
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu", *sandbox])
        stack.callback(browser.close)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.add_init_script(_DRAWN)
        page.goto(f"{service.url}/console")
        page.get_by_label("API key").fill(service.key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        times = [opened_s(page, f"{service.url}/console/runs/{run_id}") for _ in range(OPENINGS)]
        rows = page.locator("#timeline > li").count()
    median = statistics.median(times)
    return [
        f"The page of a run of {events:,} events ({rows:,} entries of its timeline) opens in {median:.2f} s, {max(times):.2f} s at the"
        f" slowest of {OPENINGS}, until the frame with its",
        "last event (Chromium, `python -m benchmarks.browser`).",
        *held((_OPENED, median)),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join(measure()) + "\n")
