"""A whole chat front end by others, Open WebUI, whose models are agents: driven in Chromium as its
users do."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import browsing, needs_browser
from tests.e2e.processes import until
from tests.e2e.service import ROOT, Service, a_turn, serving
from tests.integration.mcp.parts import free_port

PROGRAM = ROOT / ".venv-chat-ui" / "bin" / "open-webui"
START_S = 360.0
NOTE = "mcp__watched__note"
pytestmark = [
    pytest.mark.requirement("X2"),
    pytest.mark.timeout(700),
    needs_browser(),
    pytest.mark.skipif(not PROGRAM.exists(), reason="needs `make chat-ui`"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("chat-ui") / "home") as running:
        running.watched_server("watched", trusted=True)
        looks = running.script(
            "looks",
            {**a_turn("Looking.", ("mcp__watched__look", {"text": "x"})), "when": {"has_results": False}},
            {"text": "**Found** what you asked: {{ user }}", "when": {"has_results": True}},
        )
        running.agent("looks", looks, mcp_servers=["watched"])
        asks = {**a_turn("May I?", (NOTE, {"text": "x"})), "when": {"user": "^Note it", "has_results": False}}
        notes = running.script("notes", asks, {"text": "It is noted. {{ user }}"})
        policies = {NOTE: {"decision": "require_approval"}}
        running.agent("notes", notes, mcp_servers=["watched"], tool_policies=policies)
        yield running


@contextmanager
def open_webui(service: Service, directory: Path) -> Iterator[str]:
    """Its address. It has no account, and knows of the service only address and key."""
    port = free_port()
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "DATA_DIR": str(directory),
        "WEBUI_AUTH": "False",
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": f"{service.url}/openai/v1",
        "OPENAI_API_KEY": service.key,
    }
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, "serve", "--host", "127.0.0.1", "--port", str(port)],
            cwd=directory,
            env=settings,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert process.poll() is None, (directory / "log").read_text(encoding="utf-8")[-2000:]
        try:
            return httpx.get(f"{url}/health", timeout=60.0, trust_env=False).is_success
        except httpx.TransportError:
            return False

    try:
        until(ready, START_S, "Open WebUI is ready")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def chat_ui(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with open_webui(service, tmp_path_factory.mktemp("open-webui")) as url:
        yield url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def chat_with(page: Page, chat_ui: str, agent: str) -> None:
    """A new conversation. News of the front end's version, which a new browser is shown, are
    closed."""
    page.goto(f"{chat_ui}/?models={agent}")
    page.locator("#chat-input").wait_for()
    news = page.get_by_role("dialog")
    news.wait_for()
    page.keyboard.press("Escape")
    expect(news).to_have_count(0)


def say(page: Page, text: str) -> None:
    page.locator("#chat-input").click()
    page.keyboard.insert_text(text)
    page.keyboard.press("Enter")


def test_an_agent_is_chosen_as_a_model_and_answers_after_its_tools(service: Service, chat_ui: str, page: Page) -> None:
    chat_with(page, chat_ui, "looks")
    say(page, "Where is it?")
    answers = page.locator(".chat-assistant")
    expect(answers).to_have_count(1)
    expect(answers.first).to_contain_text("Found what you asked: Where is it?")
    expect(answers.first.locator("strong")).to_have_text("Found")
    runs = [run["id"] for run in service.call("GET", "/runs")["data"] if run["input"][-1]["text"] == "Where is it?"]
    ended = [service.wait(run)["run"] for run in runs]
    assert [(run["status"], run["usage"]["tool_calls"]) for run in ended] == [("completed", 1)]


def test_a_call_waits_for_its_approval_and_the_conversation_continues(
    service: Service, chat_ui: str, page: Page
) -> None:
    chat_with(page, chat_ui, "notes")
    say(page, "Note it.")
    answers = page.locator(".chat-assistant")
    expect(answers.first).to_contain_text(f"This needs a decision by a person before it continues: {NOTE}.")
    shown = answers.first.get_by_role("link")
    expect(shown).to_have_attribute("href", re.compile(r"/run_\w{26}$"))  # it comes in pieces
    link = shown.get_attribute("href")
    assert link is not None
    run = link.rsplit("/", 1)[-1]
    assert link == f"{service.url}/console/runs/{run}"
    [approval] = [found for found in service.call("GET", "/approvals?state=pending")["data"] if found["run_id"] == run]
    service.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
    service.wait(run)
    say(page, "And now?")
    expect(answers).to_have_count(2)
    expect(answers.last).to_contain_text("It is noted. And now?")
    threads = {
        run["thread_id"] for run in service.call("GET", "/runs")["data"] if run["input"][-1]["text"] == "And now?"
    }
    assert threads == {service.call("GET", f"/runs/{run}")["thread_id"]}
