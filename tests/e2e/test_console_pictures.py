"""Pictures of each page of the console for the guide: `make screenshots` makes them anew, of a small company's service."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.service import ISOLATED_PYTHON, ROOT, SERVERS, Json, Service, a_turn, serving

pytestmark = [pytest.mark.timeout(300), needs_browser()]

MAX_BYTES = 150_000
"""More would make the guide slow to open."""
BEGINS = {"agent-edit": "What it may do", "approval-phone": "Waiting for approval"}
"""The heading where a picture begins, if what it is to show is far down."""
NOTES = (
    "Version 2.4 brings exports to CSV, a calendar that follows your time zone, and sign-in with a passkey.\n"
    "Three reported faults are gone: totals of empty months, names with an apostrophe, and the printed page numbers."
)
CODE = "open_tickets = [14, 9, 11, 6]\nprint(sum(open_tickets), max(open_tickets))"
REFUND = "amounts = [19.90, 4.50]\nprint(f'refund {sum(amounts):.2f} EUR')"
LETTER = {
    "to": "customers@example.org",
    "subject": "Version 2.4 is here",
    "body": f"Dear customers,\n\n{NOTES}\n\nYours, the product team",
}
WORKFLOW = {
    "name": "release",
    "nodes": [
        {"id": "start", "kind": "entrypoint"},
        {
            "id": "collect",
            "kind": "agent",
            "config": {"agent": "researcher", "input": "What changed in {{start.version}}?"},
        },
        {"id": "write", "kind": "agent", "config": {"agent": "writer", "input": "Write notes: {{collect.text}}"}},
        {"id": "look", "kind": "human_input", "config": {"prompt": "Shall these notes go out?"}},
        {"id": "catalog", "kind": "mcp_server", "mode": "tool", "config": {"server": "catalog"}},
    ],
    "edges": [
        {"source": "start", "target": "collect"},
        {"source": "collect", "target": "write"},
        {"source": "write", "target": "look"},
        {"source": "catalog", "target": "collect", "target_handle": "tools"},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """The service, and what there is to be looked at."""

    service: Service
    finished: str
    asking: str
    letter: str
    workflow: str
    workflow_run: str


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("pictures")
    with serving(folder / "home") as service:
        _agents(service)
        _servers(service, folder)
        asked = ("How many tickets are open?", "And last week?", "Which week was the worst?")
        *_, finished = (service.run("analyst", text)["run"]["id"] for text in asked)
        service.run("writer", "Write the notes of version 2.4.")
        service.run("unlucky", "Look at the archive.")
        asking = service.start_run("refunds", "Customer 4711 was charged twice. Pay it back.")
        letter = service.run("secretary", "Tell our customers about version 2.4.")["run"]["id"]
        workflow = service.call("POST", "/workflows", WORKFLOW)["id"]
        begun = service.call("POST", f"/workflows/{workflow}/runs", {"input": {"version": "2.4"}})["id"]
        for name, role in (("dashboard", "viewer"), ("on-call", "operator"), ("ci", "runner")):
            service.call("POST", "/api-keys", {"name": name, "role": role})
        yield Company(
            service=service, finished=finished, asking=asking, letter=letter, workflow=workflow, workflow_run=begun
        )


def costing(turn: Json, tokens_in: int, tokens_out: int) -> Json:
    """The turn, as if a model had counted it."""
    return {**turn, "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out}}


def _agents(service: Service) -> None:
    counted = service.script(
        "analyst",
        {
            **a_turn("I add up the open tickets of the last four weeks.", ("code_execution", {"code": CODE})),
            "usage": {"input_tokens": 1840, "output_tokens": 62},
        },
        {
            **a_turn("40 tickets are open; the first week had the most of them, 14. It has been getting better since."),
            "usage": {"input_tokens": 1960, "output_tokens": 41, "cached_tokens": 1792},
        },
    )
    service.agent("analyst", counted, tools=["code_execution"], instructions="You answer questions about our figures.")
    found = "Four changes since 2.3: exports to CSV, time zones in the calendar, passkeys, three repairs."
    service.agent(
        "researcher", service.script("researcher", costing(a_turn(found), 2310, 58)), instructions="You read the log."
    )
    service.agent(
        "writer", service.script("writer", costing(a_turn(NOTES), 1120, 96)), instructions="You write for customers."
    )
    service.agent(
        "unlucky",
        service.script(
            "unlucky",
            a_turn("Let me look.", ("mcp__archive__find", {"year": 2019})),
            a_turn("The archive cannot be reached."),
        ),
    )
    refund = service.script(
        "refunds",
        costing(a_turn("I work out what has to go back.", ("code_execution", {"code": REFUND})), 1460, 48),
        a_turn("Done."),
    )
    asks = {
        "code_execution": {"decision": "require_approval", "allow_self_approval": True},
        "send_*": {"decision": "deny"},
    }
    service.agent(
        "refunds",
        refund,
        tools=["code_execution", "send_email"],
        tool_policies=asks,
        instructions="You pay back what was charged twice.",
    )
    written = service.script(
        "secretary", costing(a_turn("Here is the letter.", ("send_email", LETTER)), 1630, 140), a_turn("It is sent.")
    )
    service.agent("secretary", written, tools=["send_email"])


def _servers(service: Service, folder: Path) -> None:
    said = folder / "catalog"
    said.write_text("Finds an article by its number.", encoding="utf-8")
    service.server("catalog", *ISOLATED_PYTHON, str(SERVERS / "changing_server.py"), str(said))
    service.call("POST", "/mcp-servers/catalog/refresh")
    said.write_text("Finds an article by its number or name, and says how many are in stock.", encoding="utf-8")
    service.call("POST", "/mcp-servers/catalog/refresh")
    painter = ROOT / "tests" / "integration" / "mcp" / "servers" / "asking_server.py"
    service.server("painter", sys.executable, str(painter), elicitation="ask")
    service.call("POST", "/mcp-servers/painter/refresh")


def pages(company: Company) -> dict[str, tuple[str, str]]:
    """The path of each page by the name of its picture, and what is on it once it is there."""
    agent = company.service.call("GET", "/agents/refunds")["id"]
    return {
        "overview": ("/console", "Latest runs"),
        "runs": ("/console/runs", company.asking),
        "run": (f"/console/runs/{company.finished}", "It has been getting better since."),
        "approval": (f"/console/runs/{company.asking}", "Waiting for somebody"),
        "letter": (f"/console/runs/{company.letter}", "Waiting for somebody"),
        "approvals": ("/console/approvals", "code_execution"),
        "playground": ("/console/playground", "Start a run"),
        "agents": ("/console/agents", "refunds"),
        "agent": (f"/console/agents/{agent}", "refunds"),
        "agent-edit": (f"/console/agents/{agent}/edit", "refunds"),
        "servers": ("/console/servers", "catalog"),
        "quarantine": ("/console/servers/catalog", "Waiting for approval"),
        "server": ("/console/servers/painter", "Connect and list the tools"),
        "server-add": ("/console/servers-new", "Package"),
        "server-import": ("/console/servers-import", "A file"),
        "workflows": ("/console/workflows", "release"),
        "workflow": (f"/console/workflows/{company.workflow}", "collect"),
        "workflow-edit": (f"/console/workflows/{company.workflow}/edit", "Save as version 2"),
        "workflow-run": (f"/console/workflows/runs/{company.workflow_run}", "Shall these notes go out?"),
        "usage": ("/console/usage", "analyst"),
        "keys": ("/console/keys", "on-call"),
        "settings": ("/console/settings", "Days that runs are kept"),
        "secrets": ("/console/secrets", "Model providers"),
        "audit": ("/console/audit?action=tool.*", "tool.executed"),
    }


@pytest.mark.parametrize(
    ("suffix", "width", "dark", "only"),
    [("", 1280, False, None), ("-dark", 1280, True, {"overview", "approval"}), ("-phone", 390, False, {"approval"})],
    ids=["light", "dark", "phone"],
)
def test_each_page_is_drawn_for_the_guide(
    *, browser: Browser, company: Company, tmp_path: Path, suffix: str, width: int, dark: bool, only: set[str] | None
) -> None:
    folder = Path(os.environ.get("DRAGOMAN_TEST_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    somebody = Person(browser, company.service.url, width=width, dark=dark)
    somebody.sign_in(company.service.key)
    for name, (path, text) in pages(company).items():
        if only is not None and name not in only:
            continue
        somebody.go(path)
        expect(somebody.page.get_by_role("main")).to_contain_text(text)
        if name == "run":
            for closed in somebody.page.locator("#timeline summary").all():
                closed.click()
        picture = f"{name}{suffix}"
        somebody.keep(picture, folder, below=BEGINS.get(picture))
        assert (folder / f"{picture}.png").stat().st_size < MAX_BYTES
    assert somebody.complaints == []
    somebody.page.context.close()
