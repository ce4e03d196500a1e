"""The page of a run in a real browser: what policy decided, what turns cost, images, and what
people settle there."""

import base64
import struct
import sys
import zlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving
from tests.e2e.strict_provider import strict_provider, watched_agent
from tests.e2e.test_asking_server import ASKING_SERVER
from tests.integration.llm.strict.provider import Said
from tests.integration.llm.strict.responses import StrictResponses

pytestmark = [pytest.mark.timeout(240), needs_browser()]

LETTER = {"to": "ada@example.org", "subject": "Minutes of Monday", "body": "Dear Ada,\nall is well."}
MEETING = {
    "title": "Review",
    "description": "The quarter's figures.",
    "location": "Room 4",
    "start": "2026-03-02T10:00:00Z",
    "end": "2026-03-02T11:00:00Z",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("console") / "home") as running:
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def a_picture() -> str:
    """A PNG of one red point, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    return base64.b64encode(png + chunk(b"IEND", b"")).decode()


@pytest.mark.requirement("D5")
def test_a_letter_and_a_meeting_are_cards_that_are_settled_on_the_page(person: Person, service: Service) -> None:
    asked = a_turn("Here they are.", ("send_email", LETTER), ("create_calendar_event", MEETING))
    model = service.script("secretary", asked, a_turn("Both are done."))
    service.agent("secretary", model, tools=["send_email", "create_calendar_event"])
    run = service.start_run("secretary")
    page = person.page
    person.go(f"/console/runs/{run}")
    letter = page.get_by_role("region", name="An e-mail to send")
    meeting = page.get_by_role("region", name="An event for a calendar")
    expect(letter).to_contain_text("Minutes of Monday")
    expect(meeting).to_contain_text("Room 4")
    if AXE.exists():
        assert person.violations() == []
    letter.get_by_label("Result").fill("Sent at noon.")
    person.renew("#state", "run-changed")
    expect(letter.get_by_label("Result")).to_have_value("Sent at noon.")
    letter.get_by_role("button", name="Done", exact=True).click()
    expect(letter).to_have_count(0)
    meeting.get_by_role("button", name="Not done").click()
    expect(page.locator("#status")).to_have_text("completed")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    results = [
        part
        for message in service.call("GET", f"/runs/{run}/wait")["messages"]
        for part in message["content"]
        if part["type"] == "tool_result"
    ]
    assert [(part["result"], part["is_error"]) for part in results] == [
        ("Sent at noon.", False),
        ("Tool has been displayed successfully", True),
    ]


@pytest.mark.requirement("B4")
def test_a_question_of_a_server_is_answered_on_the_page(person: Person, service: Service) -> None:
    service.server("painter", sys.executable, str(ASKING_SERVER), elicitation="ask")
    model = service.script("paint", a_turn("", ("mcp__painter__paint", {"thing": "door"})), a_turn("Painted."))
    service.agent("decorator", model, mcp_servers=["painter"])
    run = service.start_run("decorator")
    person.go(f"/console/runs/{run}")
    page = person.page
    question = page.get_by_role("region", name="A question of mcp__painter__paint")
    expect(question).to_contain_text("Which colour for the door?")
    if AXE.exists():
        assert person.violations() == []
    question.get_by_label("colour", exact=False).first.fill("red")
    question.get_by_role("button", name="Answer").click()
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    page.get_by_text("Result", exact=True).click()
    expect(page.locator("#timeline")).to_contain_text("door: red")
    expect(page.locator("#timeline")).to_contain_text("server painter")
    expect(page.locator("#timeline")).to_contain_text("Allowed by default")


@pytest.mark.requirement("C2", "C3", "A10")
def test_calls_show_what_policy_and_people_decided_and_turns_what_they_cost(person: Person, service: Service) -> None:
    first = a_turn(
        "Let me see.", ("code_execution", {"code": "print(1)"}), ("website_content", {"url": "http://a.example"})
    )
    model = service.script("judge", first, a_turn("So be it."))
    policies = {
        "code_execution": {"decision": "require_approval", "allow_self_approval": True},
        "website_*": {"decision": "deny"},
    }
    service.agent("judge", model, tools=["code_execution", "website_content"], tool_policies=policies)
    run = service.start_run("judge")
    person.go(f"/console/runs/{run}")
    timeline = person.page.locator("#timeline")
    expect(timeline).to_contain_text("Denied by the agent's policy for website_*: tool denied")
    person.page.get_by_role("button", name="Approve").click()
    expect(person.page.locator("#connection")).to_have_text("Ended: completed")
    call = timeline.locator("li.call", has_text="code_execution")
    expect(call).to_contain_text("Approval required by the agent's policy for code_execution")
    expect(call).to_contain_text("Approved by first start")
    expect(timeline.locator("li.turn", has_text="Turn 2")).to_contain_text("tokens in")
    expect(timeline.get_by_text("Completed", exact=True)).to_be_visible()
    # The same after loading it anew, when everything is drawn in one go.
    told = timeline.inner_text()
    person.page.reload()
    expect(person.page.locator("#connection")).to_have_text("Ended: completed")
    expect(call).to_contain_text("Approved by first start")
    assert timeline.inner_text() == told


@pytest.mark.requirement("H2")
def test_reasoning_is_folded_before_the_message_that_follows_it(person: Person, service: Service) -> None:
    with strict_provider(StrictResponses()) as there:
        there.say(Said(reasoning="I read the clock.", text="It is noon."))
        watched_agent(service, there, reasoning_summary=True)
        run = service.run("worker")["run"]["id"]
    person.go(f"/console/runs/{run}")
    message = person.page.locator("#timeline li.said", has_text="It is noon.")
    thought = message.get_by_text("I read the clock.")
    expect(thought).to_be_hidden()
    message.get_by_text("Reasoning", exact=True).click()
    expect(thought).to_be_visible()
    expect(person.page.locator("#timeline li.turn")).to_contain_text("reasoning)")
    assert person.violations() == []


@pytest.mark.requirement("H2", "H6")
def test_a_chat_folds_reasoning_and_says_to_admins_why_a_provider_refused(person: Person, service: Service) -> None:
    with strict_provider(StrictResponses()) as there:
        there.say(Said(reasoning="I read the clock.", text="It is noon."))
        provider = {
            "name": "chats",
            "kind": "openai",
            "wire": "responses",
            "base_url": there.url,
            "api_key": "sk-chats",
        }
        service.call("POST", "/model-providers", provider)
        service.agent("thinker", "chats:gpt-test", reasoning_summary=True)
        service.agent("refused", "chats:gpt-test", model_settings={"extra_body": {"top_p": 2}})
        person.go("/console/chat?agent=thinker")
        page = person.page
        page.get_by_label("Message", exact=True).fill("What time is it?")
        page.get_by_role("button", name="Send").click()
        thought = page.get_by_text("I read the clock.")
        expect(page.locator("#connection")).to_have_text("Ended: completed")
        expect(thought).to_be_hidden()
        page.get_by_text("Reasoning", exact=True).click()
        expect(thought).to_be_visible()
        person.go("/console/chat?agent=refused")
        page.get_by_label("Message", exact=True).fill("What time is it?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#connection")).to_have_text("Ended: failed")
        expect(page.locator("#state")).to_contain_text("Unsupported parameter: 'top_p' is not supported")
    assert person.violations() == []


@pytest.mark.requirement("A1")
def test_images_are_shown_where_they_are_inline_and_only_named_where_another_site_has_them(
    person: Person, service: Service
) -> None:
    service.agent("viewer", service.script("viewer", a_turn("A red point.")))
    said = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "media_type": "image/png", "data": a_picture()},
        {"type": "image", "media_type": "image/png", "url": "https://images.example/one.png"},
    ]
    run = service.call("POST", "/runs", {"agent": "viewer", "input": said}, expect=202)["id"]
    person.go(f"/console/runs/{run}")
    timeline = person.page.locator("#timeline")
    expect(timeline).to_contain_text("What is this?")
    image = timeline.get_by_role("img", name="Image from the user")
    expect(image).to_have_js_property("naturalWidth", 1)
    expect(timeline.get_by_role("link")).to_have_attribute("href", "https://images.example/one.png")


def test_a_page_that_is_not_there_and_the_way_back_after_signing_in(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.go("/console/audit?action=run.*")
    somebody.page.get_by_label("API key").fill(service.key)
    somebody.page.get_by_role("button", name="Sign in").click()
    expect(somebody.page.get_by_role("heading", name="Audit trail")).to_be_visible()
    expect(somebody.page.get_by_label("What")).to_have_value("run.*")
    somebody.go("/console/no/such/page")
    expect(somebody.page.get_by_role("heading", name="Not found")).to_be_visible()
    somebody.page.context.close()
