"""The example of a front end with `@ai-sdk/react`, in Chromium."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import browsing, needs_browser
from tests.e2e.front_ends import NODE_MODULES, bundled, opened
from tests.e2e.processes import until
from tests.e2e.service import ROOT, Service, a_turn, serving
from tests.e2e.test_gateway_conformance import NODES

pytestmark = [
    pytest.mark.requirement("X3"),
    pytest.mark.timeout(240),
    needs_browser(),
    pytest.mark.skipif(not (NODES and (NODE_MODULES / "@ai-sdk" / "react").exists()), reason="needs `make node peers`"),
]

NOTE, HELD = "mcp__watched__note", "mcp__watched__held_look"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bundled(ROOT / "examples" / "chat.jsx", tmp_path_factory.mktemp("bundle"))


def chat(browser: Browser, service: Service, program: str) -> Page:
    page = opened(browser, service.url, program=program, key=service.key, path="/ai-sdk/")
    until_it_has_looked(page)
    return page


def until_it_has_looked(page: Page) -> None:
    """The chat looks for an answer to continue: what is said meanwhile can be lost."""
    page.wait_for_function("performance.getEntriesByType('resource').some(entry => entry.name.endsWith('/stream'))")
    expect(page.locator("output")).to_have_text("ready")


def say(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


@pytest.mark.parametrize(("button", "outcome"), [("Approve", "note says x"), ("Deny", "output-denied")])
def test_a_person_decides_about_a_call_in_the_chat_also_after_a_reload(
    tmp_path: Path, browser: Browser, program: str, button: str, outcome: str
) -> None:
    with serving(tmp_path / "home") as service:
        service.watched_server("watched", trusted=True)
        turns = a_turn("May I?", (NOTE, {"text": "x"})), a_turn("Done with {{ user }}.")
        policies = {NOTE: {"decision": "require_approval"}}
        service.agent("guide", service.script("guide", *turns), mcp_servers=["watched"], tool_policies=policies)
        page = chat(browser, service, program)
        say(page, "Note it")
        page.get_by_role("button", name=button).wait_for()
        page.reload()
        until_it_has_looked(page)
        page.get_by_role("button", name=button).click()
        page.get_by_text("Done with Note it.").wait_for()
        expect(page.locator(".call")).to_contain_text(outcome)
        page.reload()
        until_it_has_looked(page)
        say(page, "Thanks")
        page.get_by_role("button", name=button).click()
        page.get_by_text("Done with Thanks.").wait_for()
        texts = ["Note it", "May I?", "Done with Note it.", "Thanks", "May I?", "Done with Thanks."]
        expect(page.locator("p")).to_have_text(texts)
        runs = service.call("GET", "/runs")["data"]
        assert (len(runs), len({run["thread_id"] for run in runs})) == (2, 1)
        page.context.close()


def test_an_answer_continues_after_a_reload_and_after_a_kill(tmp_path: Path, browser: Browser, program: str) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", (HELD, {"text": "x", "gate": str(gate)}))
        service.agent("guide", service.script("guide", held, a_turn("Found.")), mcp_servers=["watched"])
        page = chat(browser, service, program)
        say(page, "Look")
        until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
        page.get_by_text("Looking.").wait_for()
        page.reload()
        page.get_by_text("Looking.").wait_for()
        service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home, DRAGOMAN_PORT=str(urlsplit(service.url).port)):
        page.get_by_text("Found.").wait_for()
        expect(page.locator("output")).to_have_text("ready")
        expect(page.locator("p")).to_have_text(["Look", "Looking.", "Found."])
        expect(page.locator(".call")).to_contain_text("held_look says x")
        page.context.close()


def test_stopping_cancels_the_run(tmp_path: Path, browser: Browser, program: str) -> None:
    with serving(tmp_path / "home") as service:
        service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", (HELD, {"text": "x", "gate": str(tmp_path / "gate")}))
        service.agent("guide", service.script("guide", held), mcp_servers=["watched"])
        page = chat(browser, service, program)
        say(page, "Look")
        page.get_by_text("input-available").wait_for()
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("output")).to_have_text("ready")
        [run] = service.call("GET", "/runs")["data"]
        assert run["status"] == "cancelled"
        page.context.close()
