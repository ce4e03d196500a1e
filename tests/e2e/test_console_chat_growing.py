"""The chat while an answer grows: reasoning as it comes, the end of the page followed or not, and a
failed run retried."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}
LINES = "".join(f"Line {number}.\n\n" for number in range(60))
GROW = """text => {
    const { growing, handlers } = window.conversation;
    growing(() => handlers["message.delta"]({ message_id: "msg_live", text }));
}"""
FROM_END = (
    "() => { const page = document.documentElement; return page.scrollHeight - page.scrollTop - page.clientHeight; }"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("growing") / "home") as running:
        running.agent("asker", running.script("asker", a_turn("", CALL)), tools=["code_execution"], tool_policies=ASKS)
        running.agent("clumsy", running.script("clumsy", a_turn("{{ results.last }}")))
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def open_waiting(person: Person, service: Service) -> None:
    """A conversation whose run has not ended."""
    run = service.start_run("asker", "What is 6 * 7?")
    thread = service.call("GET", f"/runs/{run}")["thread_id"]
    person.go(f"/console/chat/{thread}")
    expect(person.page.get_by_role("button", name="Approve")).to_be_visible()


def frames(*events: dict[str, object]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def test_a_failed_run_is_retried_in_its_conversation(person: Person, service: Service) -> None:
    page = person.page
    person.go("/console/chat")
    page.get_by_label("Agent", exact=True).select_option(label="clumsy · scripted:clumsy.yaml")
    page.get_by_label("Message", exact=True).fill("Greet me.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#connection")).to_have_text("Ended: failed")
    expect(page.locator("#state")).to_contain_text("model_rejected")
    conversation = page.url
    service.script("clumsy", a_turn("Hello."))
    page.get_by_role("button", name="Retry").click()
    messages = page.get_by_role("log", name="Messages")
    expect(messages.get_by_role("article", name="Answer")).to_contain_text("Hello.")
    expect(messages.get_by_role("article", name="You")).to_have_count(1)
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    assert page.url == conversation


def test_reasoning_is_folded_above_the_answer_while_both_grow(person: Person, service: Service) -> None:
    page = person.page
    live = {"message_id": "msg_live", "at": "2026-01-01T12:00:00Z"}
    told = frames(
        {**live, "type": "reasoning.delta", "seq": 90_001, "text": "Six times "},
        {**live, "type": "reasoning.delta", "seq": 90_002, "text": "seven."},
        {**live, "type": "message.delta", "seq": 90_003, "text": "It is **42**"},
    )

    def stream(route: Route) -> None:
        route.fulfill(content_type="text/event-stream", body=told)

    page.route("**/stream?*", stream)
    open_waiting(person, service)
    answer = page.locator("#msg_live")
    expect(answer.locator("strong")).to_have_text("42")
    folded = answer.locator("details")
    expect(folded.locator("summary")).to_have_text("Reasoning")
    expect(folded.locator(".text")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.locator(".text")).to_have_text("Six times seven.")
    assert not AXE.exists() or person.violations() == []


def test_the_end_is_followed_while_the_answer_grows_unless_one_has_scrolled_up(
    person: Person, service: Service
) -> None:
    page = person.page
    open_waiting(person, service)
    answer = page.locator("#msg_live")
    page.evaluate("document.documentElement.scrollTop = document.documentElement.scrollHeight")
    for number in (1, 2):
        page.evaluate(GROW, LINES)
        expect(answer.locator("p")).to_have_count(60 * number)
        assert page.evaluate(FROM_END) < 2
    page.evaluate("document.documentElement.scrollTop = 100")
    page.evaluate(GROW, LINES)
    expect(answer.locator("p")).to_have_count(180)
    assert page.evaluate("document.documentElement.scrollTop") == 100
    page.evaluate("document.documentElement.scrollTop = document.documentElement.scrollHeight")
    page.evaluate(GROW, LINES)
    expect(answer.locator("p")).to_have_count(240)
    assert page.evaluate(FROM_END) < 2
