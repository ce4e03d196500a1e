"""Every page of the console by its route, with an address at which a small company has it; and what
is no page of its own."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from interfaces.console.app import console_routes
from tests.e2e.small_company import Company, small_company
from tests.integration.http.test_console_registries import a_document

NO_PAGES = {
    "/agents/{agent_id}/history": "part of the agent's page",
    "/audit/export": "a file",
    "/runs/export": "a file",
    "/authorize": "needs an OAuth client: test_gateway_authorization.py",
    "/chat/{thread_id}/messages": "part of the chat",
    "/inbox/detail": "part of the inbox",
    "/people/{user_id}/impersonation": "needs a user: tests/integration/http/test_impersonation.py",
    "/runs/{run_id}/deliveries": "part of the run's page",
    "/runs/{run_id}/events": "a file",
    "/runs/{run_id}/raw": "a file",
    "/runs/{run_id}/state": "part of the run's page",
    "/runs/{run_id}/stream": "events",
    "/servers/{slug}/calls": "part of the server's page",
    "/servers/{slug}/install": "part of the server's page",
    "/servers/{slug}/logs": "part of the server's page",
    "/servers/{slug}/newer-version": "part of the server's page",
    "/servers/{slug}/standing": "part of the server's page",
    "/servers/{slug}/state": "part of the server's page",
    "/settings/deliveries": "part of the settings",
    "/sign-in/callback": "leads to another page",
    "/sources/{source_id}": "a file",
    "/static/{name}": "a file",
    "/usage-people.csv": "a file",
    "/usage-tools.csv": "a file",
    "/usage.csv": "a file",
    "/workflows/runs/{run_id}/state": "part of the page of a workflow run",
    "/workflows/runs/{run_id}/stream": "events",
    "/workflows/{workflow}/changes": "part of the workflow's page",
}
"""Routes besides those below `/parts`, and why they are looked at elsewhere."""

ADDRESSES = {
    "/": "",
    "/agents/{agent_id}": "/agents/{agent}",
    "/agents/{agent_id}/edit": "/agents/{agent}/edit",
    "/chat/{thread_id}": "/chat/{thread}",
    "/compare": "/compare?run={newest}&run={next}",
    "/inbox": "/inbox?item=approval:{approval}",
    "/people/groups/{group}": "/people/groups/{group}",
    "/runs/{run_id}": "/runs/{run}",
    "/schedules/{schedule_id}": "/schedules/{schedule}",
    "/servers-registries/{registry}/{namespace}/{name}": "/servers-registries/ours/com.example/tickets",
    "/servers/{slug}": "/servers/catalog",
    "/servers/{slug}/contents": "/servers/tickets/contents",
    "/servers/{slug}/edit": "/servers/catalog/edit",
    "/servers/{slug}/try": "/servers/tickets/try?tool=find_ticket",
    "/settings/identity-providers/{provider}": "/settings/identity-providers/{provider}",
    "/settings/model-providers/{name}": "/settings/model-providers/office",
    "/settings/organizations/{organization_id}": "/settings/organizations/{organization}",
    "/sign-in/{code}": "/sign-in/a-code",
    "/threads/{thread_id}": "/threads/{thread}",
    "/workflows/{workflow}": "/workflows/{workflow}",
    "/workflows/{workflow}/edit": "/workflows/{workflow}/edit",
    "/workflows/runs/{run_id}": "/workflows/runs/{workflow_run}",
}
"""Of routes with parameters, with the names of ids that a company has."""


def page_routes() -> list[str]:
    """The routes of the console that answer with whole pages."""
    reading = {
        path.replace(":str", "") for route in console_routes() if "GET" in route.http_methods for path in route.paths
    }
    return sorted(path for path in reading - NO_PAGES.keys() if not path.startswith("/parts/"))


@contextmanager
def a_registry(answers: Mapping[str, object]) -> Iterator[str]:
    """A server with these answers by path; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, name="registry")
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@contextmanager
def company_with_everything(folder: Path) -> Iterator[Company]:
    """A small company that also has a registry, an identity provider and a schedule."""
    entries = {"servers": [a_document()], "metadata": {}}
    answers = {"/v0.1/servers": entries, "/v0.1/servers/com.example%2Ftickets/versions/latest": a_document()}
    with (
        a_registry(answers) as url,
        small_company(folder, DRAGOMAN_MCP_REGISTRIES=f"ours={url}") as company,
    ):
        call = company.service.call
        rules = [{"claim": "groups", "value": "agents", "role": "operator"}]
        provider = {"name": "login", "issuer": "https://login.example.com", "client_id": "dragoman", "rules": rules}
        call("POST", "/identity-providers", provider)
        call("POST", "/schedules", {"name": "daily", "agent": "analyst", "cron": "0 8 * * *", "input": "Good morning"})
        call("POST", "/groups", {"name": "Support leads"})
        yield company


def addresses(company: Company) -> dict[str, str]:
    """By route. Routes without parameters are their own address, unless they are in `ADDRESSES`."""
    call = company.service.call
    runs = [run["id"] for run in call("GET", "/runs?limit=2")["data"]]
    ids = {
        "agent": call("GET", "/agents/refunds")["id"],
        "approval": call("GET", "/approvals?state=pending")["data"][0]["id"],
        "group": call("GET", "/groups")["data"][0]["id"],
        "organization": call("GET", "/organization")["id"],
        "provider": call("GET", "/identity-providers/login")["id"],
        "run": company.finished,
        "newest": runs[0],
        "next": runs[1],
        "schedule": call("GET", "/schedules/daily")["id"],
        "thread": call("GET", f"/runs/{company.finished}")["thread_id"],
        "workflow": company.workflow,
        "workflow_run": company.workflow_run,
    }
    return {route: ADDRESSES.get(route, route).format_map(ids) for route in page_routes()}
