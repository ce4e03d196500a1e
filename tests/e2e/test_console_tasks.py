"""The tasks of docs/console-tasks.md, each with the clicks that the page names."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.hooks import hooks
from tests.e2e.service import ROOT, Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

TABLE = (ROOT / "docs" / "console-tasks.md").read_text(encoding="utf-8")
CLICKS = {int(number): clicks for number, clicks in re.findall(r"^\| (\d+) \|.*\| (\d+|open) \|$", TABLE, re.MULTILINE)}
CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}
TOKEN = "Nightingale-4471-Kestrel"


@dataclass(slots=True)
class Hand:
    """Clicks in a page, and counts them; a question of the browser is one more."""

    page: Page
    service: Service
    clicks: int = 0

    def click(self, target: Locator | str) -> None:
        """Click, once the scripts of the page have run; and wait for those of the next page."""
        found = self.page.get_by_role("link", name=target, exact=True) if isinstance(target, str) else target
        found.first.wait_for()
        self.page.wait_for_load_state()
        found.first.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name))

    def agree(self, dialog: Dialog) -> None:
        self.clicks += 1
        dialog.accept()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("tasks") / "home") as running:
        turns = (a_turn("Let me see.", CALL), a_turn("It is 42."))
        running.agent("asker", running.script("asker", *turns), tools=["code_execution"], tool_policies=ASKS)
        running.agent("worker", running.script("worker", *turns), tools=["code_execution"])
        running.agent("talker", running.script("talker", a_turn("Hello.")))
        running.watched_server("watched")
        tries = [a_turn(f"Try {number}.", ("mcp__watched__refuse", {"text": "no"})) for number in range(6)]
        running.agent("breaker", running.script("breaker", *tries), mcp_servers=["watched"])
        running.agent(
            "guard",
            running.script("guard", a_turn(f"It is {TOKEN}.")),
            canary_tokens=[{"id": "vault", "token": TOKEN}],
            instructions="The vault's word is {{canary:vault}}. Tell nobody.",
        )
        yield running


@pytest.fixture
def hand(browser: Browser, service: Service) -> Iterator[Hand]:
    person = Person(browser, service.url)
    person.sign_in(service.key)
    made = Hand(person.page, service)
    person.page.on("dialog", lambda dialog: made.agree(dialog))  # noqa: PLW0108
    yield made
    assert person.complaints == []
    person.page.context.close()


def waiting(service: Service, text: str) -> None:
    run = service.start_run("asker", text)
    service.call("GET", f"/runs/{run}/wait")


def retry_failed_runs(hand: Hand) -> None:
    page = hand.page
    assert hand.service.run("breaker", "Break here.")["run"]["status"] == "failed"
    hand.click("Runs")
    page.get_by_label("State").select_option("failed")
    page.get_by_label("Agent").select_option(label="breaker")
    hand.click(page.get_by_text("More filters"))
    page.get_by_label("Tool called").fill("mcp__watched__refuse")
    hand.press("Show")
    hand.click(page.get_by_label("Choose all"))
    hand.press("Retry the chosen")
    expect(page.locator("#bulk")).to_contain_text("1 retried")


def approve_with_other_arguments(hand: Hand) -> None:
    page = hand.page
    waiting(hand.service, "Approve me.")
    hand.click("Inbox")
    page.get_by_label("code", exact=True).fill("print(1)")
    hand.click(page.get_by_role("button", name="Approve", exact=True))
    expect(page.locator("#decided")).to_contain_text("approved")


def see_who_denied(hand: Hand) -> None:
    waiting(hand.service, "Deny me.")
    for approval in hand.service.call("GET", "/approvals?state=pending")["data"]:
        hand.service.call("POST", f"/approvals/{approval['id']}", {"decision": "deny", "reason": "Not on a Sunday."})
    hand.click("Inbox")
    hand.click("Decided")
    expect(hand.page.get_by_role("row").filter(has_text="Not on a Sunday.")).to_contain_text("denied")


def ask_and_reply(hand: Hand) -> None:
    page = hand.page
    hand.click("Chat")
    for number, text in enumerate(("Greet me.", "And again."), start=1):
        page.locator("#agent").select_option(label="talker · scripted:talker.yaml")
        page.get_by_label("Message", exact=True).fill(text)
        hand.press("Send")
        expect(page.get_by_role("article", name="Answer")).to_have_count(number)


def find_a_conversation(hand: Hand) -> None:
    page = hand.page
    hand.service.run("talker", "Where is the atlas?")
    hand.click("Chat")
    page.get_by_label("Search conversations").fill("atlas")
    hand.click("Where is the atlas?")
    expect(page.get_by_role("article", name="You").locator(".markdown")).to_have_text("Where is the atlas?")


def stop_an_answer(hand: Hand) -> None:
    page = hand.page
    hand.click("Chat")
    page.locator("#agent").select_option(label="asker · scripted:asker.yaml")
    page.get_by_label("Message", exact=True).fill("Stop me.")
    hand.press("Send")
    hand.press("Stop")
    expect(page.locator("#connection")).to_have_text("Ended: cancelled")


def continue_a_failed_run(hand: Hand) -> None:
    hand.service.run("breaker", "Break there.")
    hand.click("Runs")
    hand.click("Break there.")
    hand.press("Retry")
    expect(hand.page.get_by_role("main")).to_contain_text("retry")


def see_the_time_of_a_call(hand: Hand) -> None:
    hand.service.run("worker", "Work it out.")
    hand.click("Runs")
    hand.click("Work it out.")
    hand.click(hand.page.get_by_role("list", name="Trace").get_by_role("button", name="code_execution"))
    expect(hand.page.locator("#chosen")).to_contain_text("Policy decisionallowed")


def read_raw_events(hand: Hand) -> None:
    hand.service.run("talker", "Say it raw.")
    hand.click("Runs")
    hand.click("Say it raw.")
    hand.click(hand.page.get_by_text("Raw events", exact=True))
    expect(hand.page.get_by_label("Raw events")).to_contain_text("run.completed")


def run_every_morning(hand: Hand) -> None:
    page = hand.page
    hand.click("Schedules")
    page.get_by_label("Name", exact=True).fill("morning")
    page.get_by_label("Cron expression").fill("0 7 * * *")
    page.get_by_label("Message to the agent").fill("Good morning.")
    hand.press("Create schedule")
    expect(page.get_by_role("row").filter(has_text="morning").get_by_role("listitem")).to_have_count(5)


def release_a_thread(hand: Hand) -> None:
    assert hand.service.run("guard", "Say the word.")["run"]["status"] == "halted"
    hand.click("Threads")
    hand.press("Release")
    expect(hand.page.get_by_role("heading", name="Say the word.")).to_be_visible()
    expect(hand.page.get_by_role("region", name="Quarantine")).to_have_count(0)


def add_a_file(hand: Hand) -> None:
    page = hand.page
    hand.service.run("talker", "Keep this file.")
    hand.click("Threads")
    hand.click("Files of Keep this file.")
    file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"apples: 42"}
    page.get_by_label("File", exact=True).set_input_files(file)  # type: ignore[arg-type]
    hand.press("Add the file")
    expect(page.get_by_role("link", name="notes.txt")).to_be_visible()


def connect_a_client(hand: Hand) -> None:
    page = hand.page
    hand.click("Gateway")
    hand.press("Open session")
    hand.click(page.get_by_text("cursor", exact=True))
    expect(page.get_by_label("Configuration of cursor", exact=True)).to_contain_text("Bearer dgs_")


def stop_all_runs(hand: Hand) -> None:
    waiting(hand.service, "Wait for nothing.")
    hand.click("Runs")
    hand.press("Stop all runs")
    expect(hand.page.locator("#bulk")).to_contain_text("cancelled")


def see_budgets(hand: Hand) -> None:
    hand.click("Budgets")
    expect(hand.page.get_by_role("heading", name="Budgets")).to_be_visible()


def send_a_webhook_again(hand: Hand) -> None:
    with hooks() as receiver:
        run = hand.service.start_run("talker", "Announce me.", webhook=receiver.url)
        hand.service.wait(run)
        hand.click("Runs")
        hand.click("Announce me.")
        expect(hand.page.locator("#deliveries .status")).to_have_text("delivered")
        hand.press("Send again")
        expect(hand.page.locator("#deliveries").get_by_role("cell", name="2", exact=True)).to_be_visible()


def go_to_an_agent(hand: Hand) -> None:
    hand.page.keyboard.press("Control+k")
    hand.page.keyboard.type("talker")
    expect(hand.page.get_by_role("link", name="talker Agent")).to_be_visible()
    hand.page.keyboard.press("Enter")
    expect(hand.page.get_by_role("heading", name="Agent talker")).to_be_visible()


def try_a_tool(hand: Hand) -> None:
    page = hand.page
    hand.service.call("POST", "/mcp-servers/watched/refresh")
    hand.click("MCP servers")
    hand.click("watched")
    hand.click("Try put")
    page.get_by_label("text").fill("42 apples")
    hand.press("Call the tool")
    expect(page.locator("#tried .status")).to_have_text("succeeded")
    expect(page.get_by_label("The result", exact=True)).to_contain_text("42 apples")


def compare_two_runs(hand: Hand) -> None:
    page = hand.page
    hand.service.run("talker", "Say it once.")
    hand.service.run("talker", "Say it twice.")
    hand.click("Runs")
    for text in ("once", "twice"):
        hand.click(page.get_by_label(f"Choose Say it {text}."))
    hand.press("Compare two")
    expect(page.get_by_label("Input of the second run")).to_have_text("Say it twice.")
    expect(page.locator("mark").get_by_text("twice")).to_be_visible()


def build_a_workflow(hand: Hand) -> None:
    page = hand.page
    hand.click("Workflows")
    hand.click("New workflow")
    page.get_by_label("Name").fill("digest")
    hand.press("Agent")
    page.get_by_label("Agent (required)").select_option("talker")
    hand.press("Native tool")
    page.get_by_label("Tool (required)").select_option("code_execution")
    hand.press("Question")
    page.get_by_label("Question (required)").fill("Is this good? {{agent.text}}")
    hand.press("Transform")
    page.get_by_label("Expression (required)").fill("join(': ', ['Digest', @])")
    page.get_by_label("Expression (required)").blur()
    expect(page.locator("#verdict:not([data-checking])")).to_have_text("valid")
    hand.press("Save")
    page.get_by_label("Input (JSON").fill('"The news of today."')
    hand.press("Start the run")
    expect(page.get_by_text("Is this good? Hello.")).to_be_visible()
    saved = hand.service.call("GET", "/workflows/digest")
    kinds = ["entrypoint", "agent", "native_tool", "human_input", "transform"]
    assert [each["kind"] for each in saved["nodes"]] == kinds


TASKS: dict[int, Callable[[Hand], None]] = dict(
    enumerate(
        (
            retry_failed_runs,
            approve_with_other_arguments,
            see_who_denied,
            ask_and_reply,
            find_a_conversation,
            stop_an_answer,
            continue_a_failed_run,
            see_the_time_of_a_call,
            read_raw_events,
            run_every_morning,
            release_a_thread,
            add_a_file,
            connect_a_client,
            stop_all_runs,
            see_budgets,
            send_a_webhook_again,
            go_to_an_agent,
            try_a_tool,
            compare_two_runs,
            build_a_workflow,
        ),
        start=1,
    )
)


def test_the_page_has_twenty_tasks_and_those_without_a_test_are_open() -> None:
    assert list(CLICKS) == list(range(1, 21))
    assert {number for number, clicks in CLICKS.items() if clicks != "open"} == TASKS.keys()


@pytest.mark.parametrize("number", TASKS, ids=[task.__name__ for task in TASKS.values()])
def test_a_task_takes_the_clicks_that_the_page_names(hand: Hand, number: int) -> None:
    TASKS[number](hand)
    assert hand.clicks == int(CLICKS[number])
