"""The chat in a real browser: Markdown, tools with approval inline, stop, retry, threads at the
left."""

import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.processes import until
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}
MARKDOWN = """# Result

It is **42**, <img src=x onerror="document.title='owned'"> see [this](javascript:alert(1)) and [that](https://a.example).

| what | how many |
|---|---:|
| apples | 42 |

```python
def answer(): return 42
```

![chart](https://images.example/one.png)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("chat") / "home") as running:
        turns = (a_turn("Let me work that out.", CALL), a_turn(MARKDOWN))
        running.agent("asker", running.script("asker", *turns), tools=["code_execution"], tool_policies=ASKS)
        running.agent("talker", running.script("talker", a_turn("Hello."), a_turn("Hello again.")))
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.repeated_ids() == []
    assert somebody.complaints == []
    somebody.page.context.close()


def say(person: Person, text: str, *, agent: str) -> None:
    page = person.page
    page.get_by_label("Agent", exact=True).select_option(label=f"{agent} · scripted:{agent}.yaml")
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_call_is_approved_inside_the_conversation_and_the_answer_is_markdown_without_html(
    person: Person, service: Service
) -> None:
    page = person.page
    person.follow("Chat", "/console/chat")
    say(person, "What is 6 * 7?", agent="asker")
    messages = page.get_by_role("log", name="Messages")
    expect(messages.get_by_role("article", name="You").locator(".markdown")).to_have_text("What is 6 * 7?")
    card = messages.get_by_role("region", name="Call of code_execution")
    expect(card).to_contain_text("waits for approval")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    if AXE.exists():
        assert person.violations() == []
    page.get_by_role("button", name="Approve").click()
    answer = messages.get_by_role("article", name="Answer").last
    expect(answer.get_by_role("heading", name="Result")).to_be_visible()
    expect(card).to_contain_text("done")
    expect(answer.locator("strong")).to_have_text("42")
    expect(answer).to_contain_text("<img src=x")
    expect(answer.get_by_role("cell", name="apples")).to_be_visible()
    expect(answer.locator("pre .hljs-keyword").first).to_have_text("def")
    expect(answer.get_by_role("link")).to_have_count(2)
    assert answer.get_by_role("link").evaluate_all("links => links.map(each => each.href)") == [
        "https://a.example/",
        "https://images.example/one.png",
    ]
    expect(answer.locator("img")).to_have_count(0)
    if AXE.exists():
        assert person.violations() == []
    # The same after it is loaded again, from the stored messages.
    page.reload()
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(messages.get_by_role("article")).to_have_count(3)
    expect(card).to_contain_text("done")
    expect(page).to_have_title("What is 6 * 7? · Dragoman")


def test_a_reply_continues_the_thread_which_stands_at_the_left_by_its_first_words(
    person: Person, service: Service
) -> None:
    page = person.page
    person.go("/console/chat")
    say(person, "Greet me, please.", agent="talker")
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("Hello.")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    page.get_by_label("Message", exact=True).fill("And again.")
    page.keyboard.press("Control+Enter")
    expect(messages.get_by_role("article")).to_have_count(4)
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(page.locator("#talk")).to_have_count(1)  # the reply of the run's page, which the chat keeps out of sight
    assert person.repeated_ids() == []
    thread = page.url.rpartition("/")[2]
    runs = service.call("GET", f"/runs?thread_id={thread}")["data"]
    assert [run["input"][0]["text"] for run in runs] == ["And again.", "Greet me, please."]
    person.go("/console/chat")
    page.get_by_label("Search conversations").fill("greet ME")
    left = page.get_by_role("region", name="Conversations")
    expect(left.get_by_role("listitem")).to_have_count(1)
    left.get_by_role("link", name="Greet me, please.").click()
    expect(messages.get_by_role("article")).to_have_count(4)


def test_a_run_is_stopped_and_what_was_typed_stays_when_it_cannot_be_sent(person: Person, service: Service) -> None:
    page = person.page
    person.go("/console/chat")
    say(person, "Stop me.", agent="asker")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#connection")).to_have_text("Ended: cancelled")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    service.call("PATCH", "/agents/talker", {"enabled": False})
    say(person, "Are you there?", agent="talker")
    expect(page.locator("#flash")).to_contain_text("disabled")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Are you there?")
    service.call("PATCH", "/agents/talker", {"enabled": True})
    page.route("**/console/chat", lambda route: route.fulfill(status=502, body="bad gateway"))
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#flash")).to_contain_text("The answer was HTTP 502.")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Are you there?")
    person.complaints.clear()  # the browser notes the refusal


def test_a_run_that_waits_is_followed_before_those_behind_it_and_nothing_is_sent_meanwhile(
    person: Person, service: Service
) -> None:
    page = person.page
    person.go("/console/chat")
    say(person, "Work it out.", agent="asker")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_label("Message", exact=True).fill("And now?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Message", exact=True)).to_have_value("And now?")
    thread = page.url.rpartition("/")[2]
    assert len(service.call("GET", f"/runs?thread_id={thread}")["data"]) == 1
    behind = {"agent": "talker", "input": "Greet me.", "thread_id": thread}
    service.call("POST", "/runs", behind, expect=202)
    page.reload()
    page.get_by_role("button", name="Approve").click()
    messages = page.get_by_role("log", name="Messages")
    expect(messages.get_by_role("heading", name="Result")).to_be_visible()
    expect(messages.get_by_role("article", name="Answer").last).to_have_text(re.compile("Hello"))
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_files_are_attached_and_the_chat_fits_a_phone_in_the_dark(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url, width=390, dark=True)
    somebody.sign_in(service.key)
    somebody.go("/console/chat?agent=talker")
    somebody.page.get_by_label("Images and files").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"apples: 42"}
    )
    say(somebody, "Read this.", agent="talker")
    expect(somebody.page.get_by_role("article", name="You")).to_contain_text("notes.txt")
    expect(somebody.page.locator("#connection")).to_have_text("Ended: completed")
    if AXE.exists():
        assert somebody.violations() == []
    assert somebody.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert somebody.complaints == []
    somebody.page.context.close()


def test_an_edited_message_goes_on_in_a_branch_and_both_lead_to_each_other(person: Person, service: Service) -> None:
    page = person.page
    person.go("/console/chat?agent=talker")
    page.get_by_label("Images and files").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"apples: 42"}
    )
    say(person, "Greet the apples.", agent="talker")
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("Hello.")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    before = page.url
    messages.get_by_role("button", name="Edit the message").click()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Edited message")).to_have_count(0)
    messages.get_by_role("button", name="Edit the message").click()
    page.get_by_label("Edited message").fill("Greet the pears.")
    if AXE.exists():
        assert person.violations() == []
    page.get_by_role("button", name="Send as a branch").click()
    page.wait_for_url(lambda url: url != before)
    mine = messages.get_by_role("article", name="You")
    expect(mine.locator(".markdown")).to_have_text("Greet the pears.")
    expect(mine).to_contain_text("notes.txt")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    branch = page.url
    thread = service.call("GET", f"/threads/{branch.rpartition('/')[2]}")
    assert thread["forked_from"]["thread_id"] == before.rpartition("/")[2]
    mine.get_by_role("link", name="Edited: the message before").click()
    expect(mine.locator(".markdown")).to_have_text("Greet the apples.")
    expect(mine).to_have_class(re.compile("place"))
    mine.get_by_role("link", name="Edited later: that branch").click()
    page.wait_for_url(branch)


def test_a_refused_edit_leaves_no_branch(person: Person, service: Service) -> None:
    page = person.page
    person.go("/console/chat")
    say(person, "Greet the plums.", agent="talker")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    count = len(service.call("GET", "/threads")["data"])
    service.call("PATCH", "/agents/talker", {"enabled": False})
    page.get_by_role("button", name="Edit the message").click()
    page.get_by_label("Edited message").fill("Greet the cherries.")
    page.get_by_role("button", name="Send as a branch").click()
    expect(page.locator("#flash")).to_contain_text("disabled")
    expect(page.get_by_label("Edited message")).to_have_value("Greet the cherries.")
    service.call("PATCH", "/agents/talker", {"enabled": True})
    assert len(service.call("GET", "/threads")["data"]) == count
    person.complaints.clear()  # the browser notes the refusal


def test_every_message_is_copied_and_a_link_opens_the_conversation_there_to_be_read(
    person: Person, service: Service, browser: Browser
) -> None:
    page = person.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.go("/console/chat")
    say(person, "Copy me.", agent="talker")
    messages = page.get_by_role("log", name="Messages")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    copied = []
    for author in ("You", "Answer"):
        message = messages.get_by_role("article", name=author)
        message.get_by_role("button", name="Copy the message").click()
        expect(message.get_by_role("button", name="Copy the message")).to_have_text("Copied")
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    assert copied == ["Copy me.", "Hello."]
    of_answer = messages.get_by_role("article", name="Answer").get_by_role("button", name="Copy a link")
    of_answer.click()
    expect(of_answer).to_have_text("Copied")
    link: str = page.evaluate("navigator.clipboard.readText()")
    of_page = page.locator("#share").get_by_role("button")
    expect(of_page).to_have_text("Copy link")
    of_page.click()
    expect(of_page).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == link
    viewer = service.call("POST", "/api-keys", {"name": "reader", "role": "viewer"}, expect=201)["token"]
    reader = Person(browser, service.url)
    reader.sign_in(viewer)
    reader.page.goto(link)
    expect(reader.page.get_by_role("article", name="Answer")).to_have_class(re.compile("place"))
    expect(reader.page.get_by_text("You opened a link to this conversation, to read it.")).to_be_visible()
    expect(reader.page.get_by_role("link", name="Write in it")).to_have_count(0)
    if AXE.exists():
        assert reader.violations() == []
    reader.page.context.close()
    page.goto(link)
    expect(page.get_by_label("Message", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Write in it").click()
    expect(page.get_by_label("Message", exact=True)).to_be_visible()


IS_UNCOVERED = """button => {
    const { left, top, width, height } = button.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) === button;
}"""


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_what_waits_is_scrolled_to_and_nothing_covers_it(
    browser: Browser, service: Service, width: int, dark: bool
) -> None:
    somebody = Person(browser, service.url, width=width, dark=dark)
    somebody.sign_in(service.key)
    somebody.go("/console/chat")
    say(somebody, "Work it out.\n" * 40, agent="asker")
    for _ in range(2):
        for name in ("Approve", "Deny"):
            button = somebody.page.get_by_role("button", name=name)
            expect(button).to_be_in_viewport(ratio=1)
            until(partial(button.evaluate, IS_UNCOVERED), what=f"{name} to be scrolled to")
        if AXE.exists():
            assert somebody.violations() == []
        somebody.page.reload()
    somebody.page.get_by_role("button", name="Deny").click()
    expect(somebody.page.locator("#connection")).to_have_text("Ended: completed")
    assert somebody.complaints == []
    somebody.page.context.close()
