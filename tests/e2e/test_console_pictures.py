"""Pictures of each page of the console for the guide: `make screenshots` makes them anew, of a
small company's service."""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.service import ROOT
from tests.e2e.small_company import WORKFLOW, Company, small_company

pytestmark = [pytest.mark.timeout(900), needs_browser()]

MAX_BYTES = 125_000
"""More would make the guide slow to open."""
WITHOUT_FOLDERS = """for (const what of document.querySelectorAll("dt")) {
    if (what.textContent === "Starts") {
        const shown = what.nextElementSibling;
        shown.textContent = shown.textContent.split(" ").map(each => each.split("/").pop()).join(" ");
    }
}"""
"""What a server starts, without the folders of the machine on which the pictures are made."""
CLIENTS_FILE = {
    "mcpServers": {
        "Time": {"command": "uvx", "args": ["mcp-server-time"]},
        "github": {"url": "https://mcp.example.com/github", "headers": {"Authorization": "Bearer ghp_0123456789"}},
        "Files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/shared"]},
        "old": {"note": "not used"},
    }
}
FAULTY = {
    **WORKFLOW,
    "nodes": [*WORKFLOW["nodes"][:4], {"id": "publish", "kind": "printer"}],
    "edges": [*WORKFLOW["edges"][:3], {"source": "look", "target": "archive"}],
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with small_company(tmp_path_factory.mktemp("pictures")) as opened:
        yield opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A page, what is on it once it is there, what is done before the picture is taken, where that
    begins and how high it is."""

    path: str
    text: str
    before: Callable[[Page], None] | None = None
    top: str | None = None
    height: int = 900


def unfold_timeline(page: Page) -> None:
    for closed in page.locator("#timeline summary").all():
        closed.click()


def look_at_a_file(page: Page) -> None:
    entries = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in CLIENTS_FILE["mcpServers"].items()
    )
    text = page.get_by_label("Or text")
    text.fill(f'{{"mcpServers": {{\n{entries}\n}}}}')
    text.evaluate("each => { each.rows = 8; }")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("region", name="Preview").wait_for()


def fill_in_a_package(page: Page) -> None:
    page.locator("#slug").fill("time")
    page.get_by_label("Package", exact=True).fill("mcp-server-time")
    page.locator("#env-0-name").fill("TZ")
    page.locator("#env-0-value").fill("Europe/Vienna")


def fill_in_a_provider(page: Page) -> None:
    for name, value in (("Name", "company"), ("Issuer", "https://login.example.com"), ("Client id", "dragoman")):
        page.get_by_label(name, exact=True).fill(value)
    page.get_by_label("Claim").fill("groups")
    page.get_by_label("Value").fill("agents")


def find_a_ticket(page: Page) -> None:
    for words in ("charged twice", "refund"):
        page.get_by_label("words").fill(words)
        with page.expect_response("**/try"):
            page.get_by_role("button", name="Call the tool").click()
        expect(page.locator("#tried .status")).to_have_text("succeeded")


def see_its_calls(page: Page) -> None:
    expect(page.locator("#calls")).to_contain_text("95th percentile")


def see_the_charts(page: Page) -> None:
    expect(page.get_by_role("img", name="Duration of runs: at most")).to_be_visible()


def compare_two(page: Page) -> None:
    for asked in ("How many tickets are open?", "And last week?"):
        page.get_by_label(f"Choose {asked}").check()
    page.get_by_role("button", name="Compare two").click()
    page.get_by_role("heading", name="Steps").wait_for()


def check_a_faulty_workflow(page: Page) -> None:
    page.get_by_role("button", name="YAML").click()
    page.get_by_label("Definition (YAML or JSON)").fill(json.dumps(FAULTY, indent=1))
    expect(page.locator("#verdict:not([data-checking])")).to_have_text("2 faults")
    page.get_by_role("button", name="Canvas").click()
    page.locator('[data-node="publish"] button').click()
    expect(page.locator("#verdict")).to_have_css("opacity", "1")


def choose_an_agent(page: Page) -> None:
    page.locator('[data-node="collect"] button').click()
    expect(page.locator("#verdict")).to_have_text("valid")


def pictures(company: Company, *, phone: bool) -> dict[str, Picture]:
    """By name. On a phone pages are higher."""
    agent = company.service.call("GET", "/agents/refunds")["id"]
    approval = company.service.call("GET", "/approvals?state=pending")["data"][0]["id"]
    workflow, run = f"/console/workflows/{company.workflow}", f"/console/workflows/runs/{company.workflow_run}"
    return {
        "overview": Picture(path="/console", text="Latest runs", before=see_the_charts, height=600),
        "inbox": Picture(path=f"/console/inbox?item=approval:{approval}", text="Customer 4711", height=590),
        "runs": Picture(path="/console/runs", text="waiting for a person", height=520),
        "run": Picture(
            path=f"/console/runs/{company.finished}",
            text="It has been getting better since.",
            before=unfold_timeline,
            height=780,
        ),
        "compare": Picture(path="/console/runs", text="And last week?", before=compare_two, height=860),
        "approval": Picture(
            path=f"/console/runs/{company.asking}", text="Waiting for a person", height=1_200 if phone else 790
        ),
        "letter": Picture(path=f"/console/runs/{company.letter}", text="Waiting for a person", height=720),
        "approvals": Picture(path="/console/approvals", text="code_execution", height=500),
        "playground": Picture(path="/console/playground", text="Start a run", height=500),
        "agents": Picture(path="/console/agents", text="refunds", height=480),
        "agent": Picture(path=f"/console/agents/{agent}", text="refunds", height=640),
        "agent-versions": Picture(path=f"/console/agents/{agent}", text="Version 2", top="h2:text-is('Versions')"),
        "agent-edit": Picture(path=f"/console/agents/{agent}/edit", text="refunds", height=760),
        "policy": Picture(
            path=f"/console/agents/{agent}/edit",
            text="Permissions",
            top="section[aria-labelledby=may-title]",
            height=820,
        ),
        "servers": Picture(path="/console/servers", text="catalog", height=410),
        "server-trial": Picture(
            path="/console/servers/tickets/try?tool=find_ticket", text="Try", before=find_a_ticket, height=720
        ),
        "server": Picture(path="/console/servers/tickets", text="close_ticket", before=see_its_calls, height=690),
        "server-new": Picture(
            path="/console/servers-new?kind=python", text="Add an MCP server", before=fill_in_a_package, height=760
        ),
        "server-import": Picture(
            path="/console/servers-import", text="Import MCP servers", before=look_at_a_file, height=760
        ),
        "server-installing": Picture(path="/console/servers/invoices", text="Installing:", height=520),
        "quarantine": Picture(path="/console/servers/catalog", text="Waiting for approval", height=690),
        "workflows": Picture(path="/console/workflows", text="release", height=430),
        "workflow": Picture(path=workflow, text="collect"),
        "workflow-edit": Picture(path=f"{workflow}/edit", text="Edit release", before=choose_an_agent, height=680),
        "workflow-faults": Picture(
            path=f"{workflow}/edit", text="Edit release", before=check_a_faulty_workflow, height=780
        ),
        "workflow-run": Picture(path=run, text="Shall these notes go out?", height=1_200 if phone else 940),
        "usage": Picture(path="/console/usage", text="analyst", height=1_000),
        "keys": Picture(path="/console/keys", text="on-call", height=700),
        "settings": Picture(path="/console/settings", text="Retention of runs (days)", height=680),
        "secrets": Picture(path="/console/secrets", text="TICKETS_TOKEN", height=800),
        "identity-provider": Picture(
            path="/console/settings/identity-providers-new",
            text="Who is admitted",
            before=fill_in_a_provider,
            height=650,
        ),
        "audit": Picture(path="/console/audit?action=tool.*", text="tool.executed", height=520),
    }


@pytest.mark.parametrize(
    ("suffix", "width", "dark", "only"),
    [
        ("", 1280, False, None),
        ("-dark", 1280, True, {"overview", "approval"}),
        ("-phone", 390, False, {"approval", "workflow-run"}),
    ],
    ids=["light", "dark", "phone"],
)
def test_each_page_is_drawn_for_the_guide(
    *, browser: Browser, company: Company, tmp_path: Path, suffix: str, width: int, dark: bool, only: set[str] | None
) -> None:
    folder = kept_in(tmp_path)
    somebody = Person(browser, company.service.url, width=width, dark=dark)
    somebody.sign_in(company.service.key)
    for name, picture in pictures(company, phone=width < 600).items():
        if only is not None and name not in only:
            continue
        somebody.go(picture.path)
        expect(somebody.page.get_by_role("main")).to_contain_text(picture.text)
        if picture.before is not None:
            picture.before(somebody.page)
        somebody.page.evaluate(WITHOUT_FOLDERS)
        top = None if picture.top is None else somebody.page.locator(picture.top)
        somebody.keep(f"{name}{suffix}", folder, top=top, height=picture.height)
    assert somebody.complaints == []
    somebody.page.context.close()


def test_the_page_where_people_sign_in_is_drawn_for_the_guide(
    browser: Browser, company: Company, tmp_path: Path
) -> None:
    somebody = Person(browser, company.service.url)
    somebody.go("/console")
    expect(somebody.page.get_by_label("API key")).to_be_visible()
    somebody.keep("sign-in", kept_in(tmp_path), height=480)
    assert somebody.complaints == []
    somebody.page.context.close()


def test_the_guide_shows_every_picture_and_none_is_heavy() -> None:
    guide = (ROOT / "docs" / "guides" / "console.md").read_text(encoding="utf-8")
    kept = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images" / "console").glob("*.png")}
    assert set(kept) == set(re.findall(r"\.\./images/console/([\w-]+\.png)", guide))
    assert {name: size for name, size in kept.items() if size > MAX_BYTES} == {}


def kept_in(folder: Path) -> Path:
    """Where pictures go: the guide's folder if it is given, else one of the test."""
    chosen = Path(os.environ.get("DRAGOMAN_TEST_SCREENSHOTS", folder))
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen
