"""What the service of a small company holds, for the pictures of the guide: agents with priced
models, servers, runs, a workflow."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.e2e.priced_model import priced_model
from tests.e2e.processes import until
from tests.e2e.service import ISOLATED_PYTHON, ROOT, SERVERS, Json, Service, a_turn, serving
from tests.e2e.test_console_servers import held_package
from tests.integration.mcp.install.uv import path_with_uv

NOTES = (
    "Version 2.4 brings exports to CSV, a calendar that follows your time zone, and sign-in with a passkey.\n"
    "Three reported faults are gone: totals of empty months, names with an apostrophe, and the printed page numbers."
)
FOUND = "Four changes since 2.3: exports to CSV, time zones in the calendar, passkeys, three repairs."
CODE = "open_tickets = [14, 9, 11, 6]\nprint(sum(open_tickets), max(open_tickets))"
REFUND = "amounts = [19.90, 4.50]\nprint(f'refund {sum(amounts):.2f} EUR')"
LETTER = {
    "to": "customers@example.org",
    "subject": "Version 2.4 is here",
    "body": f"Dear customers,\n\n{NOTES}\n\nYours, the product team",
}
SMALL, LARGE = "openai:gpt-5-mini", "openai:gpt-5"
WORKFLOW: Json = {
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


def costing(turn: Json, tokens_in: int, tokens_out: int, *, cached: int = 0) -> Json:
    """The turn, as if a model had counted it."""
    return {**turn, "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out, "cached_tokens": cached}}


SCRIPTS = {
    "You answer questions about our figures.": (
        costing(
            a_turn("I add up the open tickets of the last four weeks.", ("code_execution", {"code": CODE})), 1840, 62
        ),
        costing(
            a_turn("40 tickets are open; the first week had the most of them, 14. It has been getting better since."),
            1960,
            41,
            cached=1792,
        ),
    ),
    "You read the log of changes.": (costing(a_turn(FOUND), 2310, 58),),
    "You write for customers.": (costing(a_turn(NOTES), 1120, 96),),
    "You look things up in the archive.": (
        costing(a_turn("Let me look.", ("mcp__archive__find", {"year": 2019})), 840, 22),
        costing(a_turn("The archive cannot be reached."), 910, 11, cached=768),
    ),
    "You pay back what was charged twice.": (
        costing(a_turn("I work out what has to go back.", ("code_execution", {"code": REFUND})), 1460, 48),
        costing(a_turn("24.40 EUR go back to the customer."), 1570, 19),
    ),
    "You write letters.": (
        costing(a_turn("Here is the letter.", ("send_email", LETTER)), 1630, 140),
        costing(a_turn("It is sent."), 1820, 6),
    ),
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


@contextmanager
def small_company(folder: Path, **settings: str) -> Iterator[Company]:
    """It works in `folder`, with one installation under way until the end, and with further
    settings."""
    package, gate = held_package(folder)
    with priced_model(SCRIPTS) as base_url:
        models = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-any"}
        with serving(folder / "home", **models, PATH=path_with_uv(folder), **settings) as service:
            _agents(service)
            _servers(service, folder, package)
            _secrets(service)
            try:
                yield _at_work(service)
            finally:
                gate.touch()


def _asks(service: Service, path: str) -> bool:
    return bool(service.call("GET", path)["status"] == "requires_action")


def _at_work(service: Service) -> Company:
    asked = ("How many tickets are open?", "And last week?", "Which week was the worst?")
    *_, finished = (service.run("analyst", text)["run"]["id"] for text in asked)
    service.run("writer", "Write the notes of version 2.4.")
    service.run("archivist", "Look at the archive.")
    asking = service.start_run("refunds", "Customer 4711 was charged twice. Pay it back.")
    letter = service.run("secretary", "Tell our customers about version 2.4.")["run"]["id"]
    workflow = service.call("POST", "/workflows", WORKFLOW)["id"]
    begun = service.call("POST", f"/workflows/{workflow}/runs", {"input": {"version": "2.4"}})["id"]
    for path in (f"/runs/{asking}", f"/workflow-runs/{begun}"):
        until(partial(_asks, service, path), what=f"the question of {path}")
    for name, role in (("dashboard", "viewer"), ("on-call", "operator"), ("ci", "runner")):
        service.call("POST", "/api-keys", {"name": name, "role": role})
    return Company(
        service=service, finished=finished, asking=asking, letter=letter, workflow=workflow, workflow_run=begun
    )


def _agents(service: Service) -> None:
    figures, log, customers, archive, refunds, letters = SCRIPTS
    service.agent("analyst", SMALL, tools=["code_execution"], instructions=figures)
    service.agent("researcher", SMALL, instructions=log)
    service.agent("writer", LARGE, instructions=customers)
    service.agent("archivist", SMALL, instructions=archive)
    asks = {
        "code_execution": {"decision": "require_approval", "allow_self_approval": True},
        "send_*": {"decision": "deny"},
    }
    service.agent("refunds", SMALL, tools=["code_execution"], tool_policies={"send_*": {}}, instructions=refunds)
    changed = {
        "model": LARGE,
        "fallback_models": [SMALL],
        "tools": ["code_execution", "send_email"],
        "tool_policies": asks,
        "instructions": f"{refunds}\nNever more than 100 EUR at once.",
    }
    service.call("PATCH", "/agents/refunds", changed)
    service.agent("secretary", LARGE, tools=["send_email"], instructions=letters)


def _servers(service: Service, folder: Path, package: Path) -> None:
    said = folder / "catalog"
    said.write_text("Finds an article by its number.", encoding="utf-8")
    service.server("catalog", *ISOLATED_PYTHON, str(SERVERS / "changing_server.py"), str(said))
    service.call("POST", "/mcp-servers/catalog/refresh")
    said.write_text("Finds an article by its number or name, and says how many are in stock.", encoding="utf-8")
    service.call("POST", "/mcp-servers/catalog/refresh")
    painter = ROOT / "tests" / "integration" / "mcp" / "servers" / "asking_server.py"
    service.server("painter", sys.executable, str(painter), elicitation="ask")
    service.server("tickets", *ISOLATED_PYTHON, str(SERVERS / "tickets_server.py"))
    for slug in ("painter", "tickets"):
        service.call("POST", f"/mcp-servers/{slug}/refresh")
    careful = {"mcp__tickets__close_ticket": {"decision": "require_approval"}}
    service.agent(
        "support", SMALL, mcp_servers=["tickets"], tool_policies=careful, instructions="You answer customers."
    )
    service.call("POST", "/mcp-servers", {"slug": "invoices", "kind": "python", "package": str(package)})
    service.call("POST", "/mcp-servers/invoices/install")


def _secrets(service: Service) -> None:
    for name in ("TICKETS_TOKEN", "INVOICES_KEY", "WEBHOOK_SECRET"):
        service.call("POST", "/secrets", {"name": name, "value": f"the value of {name}"})
    provider = {"name": "office", "kind": "openai", "base_url": "https://models.example.org/v1"}
    service.call("POST", "/model-providers", provider)
