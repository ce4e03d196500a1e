"""The page of a run as a trace: a waterfall beside the timeline, raw events, many events."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}
EVENTS = 5_000
CHANGED_ROWS = """() => new Promise((resolve) => new MutationObserver((changes, observer) => {
  observer.disconnect();
  const rows = changes.map((each) => (each.target.parentElement ?? document.body).closest("#trace > li"));
  resolve([...new Set(rows.filter(Boolean).map((row) => row.querySelector(".name").textContent))]);
}).observe(document.getElementById("trace"), { attributes: true, characterData: true, childList: true, subtree: true }))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("trace") / "home") as running:
        turns = (a_turn("Let me work that out.", CALL), a_turn("It is 42."))
        running.agent("asker", running.script("asker", *turns), tools=["code_execution"], tool_policies=ASKS)
        running.agent("talker", running.script("talker", a_turn("Hello.")))
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url, width=1440)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def plant_calls(service: Service, run: str) -> int:
    """Give an ended run as many calls as make 5,000 events; how many calls."""
    with closing(sqlite3.connect(service.home / "dragoman.db", timeout=30)) as database, database:
        organization, seq, at = database.execute(
            "SELECT organization_id, seq, at FROM run_event WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run,)
        ).fetchone()
        calls = (EVENTS - int(seq)) // 2
        for number in range(calls):
            call: dict[str, object] = {"tool_call_id": f"call_{number}", "name": f"tool_{number}"}
            started = json.dumps({**call, "params": {"number": number}})
            executed = json.dumps({**call, "duration_ms": 1, "server": None})
            for offset, kind, data in ((1, "tool.started", started), (2, "tool.executed", executed)):
                row = (run, seq + 2 * number + offset, organization, kind, at + 1000 * (2 * number + offset), data)
                database.execute(
                    "INSERT INTO run_event (run_id, seq, organization_id, type, at, data) VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )
        database.execute("UPDATE run SET last_seq = ? WHERE id = ?", (seq + 2 * calls, run))
        return calls


def test_the_waterfall_has_model_calls_calls_and_waits_and_leads_to_the_step(person: Person, service: Service) -> None:
    page = person.page
    run = service.start_run("asker", "What is 6 * 7?")
    person.go(f"/console/runs/{run}")
    expect(page.get_by_role("heading", name="What is 6 * 7?")).to_be_visible()
    trace = page.get_by_role("list", name="Trace")
    expect(trace).to_contain_text("Approval: code_execution")
    assert page.evaluate(CHANGED_ROWS) == ["Approval: code_execution"]
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    names = trace.locator(".name")
    expect(names).to_have_text(
        ["Queued", "Model call 1", "Approval: code_execution", "Queued", "code_execution", "Model call 2"]
    )
    if AXE.exists():
        assert person.violations() == []
    trace.get_by_role("button", name="code_execution").last.click()
    facts = page.locator("#chosen .facts > div")
    for fact in (
        "Policy decisionapproval required",
        "Layerpolicy of the agent",
        "Rulecode_execution",
        "Reasonthe rule asks for a person",
    ):
        expect(facts.filter(has_text=fact)).to_have_count(1)
    if AXE.exists():
        assert person.violations() == []
    expect(trace).to_contain_text("Approved by")
    trace.get_by_role("button", name="Approval: code_execution").click()
    expect(facts.filter(has_text="Person")).to_contain_text("Approved by")
    expect(page.locator("#timeline > li.chosen")).to_contain_text("code_execution")
    trace.get_by_role("button", name="Model call 2").click()
    expect(facts.filter(has_text="Tokens")).to_contain_text(" in, ")
    expect(facts.filter(has_text="Policy decision")).to_have_count(0)
    page.get_by_text("Raw events", exact=True).click()
    raw = page.get_by_label("Raw events")
    expect(raw).to_contain_text('"type":"run.completed"')
    assert len(raw.inner_text().splitlines()) == len(service.events(run))
    page.reload()
    expect(names).to_have_count(6)
    page.route("**/raw?*", lambda route: route.fulfill(status=500, body="no events"))
    page.get_by_text("Raw events", exact=True).click()
    expect(raw).to_have_text("The events could not be read. Close this and open it again.")
    person.complaints.clear()  # the browser notes the failure


@pytest.mark.parametrize("width", [390, 1440])
def test_all_bars_of_a_trace_share_one_axis_of_time(browser: Browser, service: Service, width: int) -> None:
    run = service.start_run("asker", "What is 6 * 7?")
    somebody = Person(browser, service.url, width=width)
    somebody.sign_in(service.key)
    somebody.go(f"/console/runs/{run}")
    expect(somebody.page.locator("#trace")).to_contain_text("Approval: code_execution")
    somebody.page.get_by_role("button", name="Approve").click()
    expect(somebody.page.locator("#connection")).to_have_text("Ended: completed")
    expect(somebody.page.locator("#trace > li")).to_have_count(6)
    # Facts of unequal length must not move the bars.
    somebody.page.locator("#trace .took").first.evaluate("each => { each.textContent += ' · $12.3456'; }")
    tracks = somebody.page.locator("#trace .track").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect()).map(box => `${box.x} ${box.width}`)"
    )
    assert len(tracks) == 6
    assert len(set(tracks)) == 1, tracks
    assert somebody.complaints == []
    somebody.page.context.close()


def test_a_run_of_five_thousand_events_is_drawn_whole(person: Person, service: Service) -> None:
    run = service.run("talker")["run"]["id"]
    calls = plant_calls(service, run)
    person.go(f"/console/runs/{run}")
    expect(person.page.locator("#trace > li")).to_have_count(calls + 2, timeout=150_000)
    expect(person.page.locator("#timeline > li.call.ok")).to_have_count(calls + 1, timeout=60_000)
    opened = person.page.evaluate("performance.getEntriesByName('trace-drawn')[0].startTime")
    print(f"5,000 events drawn after {opened:.0f} ms")  # noqa: T201


def test_the_trace_stays_within_the_screen_of_a_phone(browser: Browser, service: Service) -> None:
    run = service.run("talker")["run"]["id"]
    for width, dark in ((390, False), (1024, True)):
        somebody = Person(browser, service.url, width=width, dark=dark)
        somebody.sign_in(service.key)
        somebody.go(f"/console/runs/{run}")
        expect(somebody.page.locator("#trace")).to_contain_text("Model call 1")
        if AXE.exists():
            assert somebody.violations() == []
        assert somebody.page.evaluate("document.documentElement.scrollWidth") <= width
        assert somebody.complaints == []
        somebody.page.context.close()
