"""The webhook of an inbox gets everything that begins to wait for a person, signed and with a link
to the item."""

import json
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.e2e.hooks import Hooks, hooks
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.e2e.test_asking_server import ASKING_SERVER
from tests.e2e.test_changing_server import MALICIOUS
from tests.e2e.test_changing_server import register as register_changing
from tests.e2e.test_secrets_and_authorization import oauth_outside

TOKEN = "planted-canary-91d2c07e"
EMAIL = {"subject": "Hi", "body": "There.", "to": "a@example.com"}
ASK = {"prompt": "Ship it?", "schema": {"enum": ["yes", "no"]}}


def wait_for_approval_a_question_and_a_client(service: Service) -> dict[str, str]:
    """The runs that wait, by their agents."""
    service.watched_server("watched")
    note = "mcp__watched__note"
    model = service.script("notes", a_turn("", (note, {"text": "x"})))
    service.agent("notes", model, mcp_servers=["watched"], tool_policies={note: {"decision": "require_approval"}})
    service.server("painter", sys.executable, str(ASKING_SERVER), elicitation="ask")
    model = service.script("paints", a_turn("", ("mcp__painter__paint", {"thing": "door"})))
    service.agent("paints", model, mcp_servers=["painter"])
    service.agent("writes", service.script("writes", a_turn("", ("send_email", EMAIL))), tools=["send_email"])
    return {agent: service.start_run(agent) for agent in ("notes", "paints", "writes")}


def halt_a_thread(service: Service) -> str:
    service.agent(
        "leaks", service.script("leaks", a_turn(f"It is {TOKEN}.")), canary_tokens=[{"id": "c", "token": TOKEN}]
    )
    return str(service.run("leaks")["run"]["thread_id"])


def ask_in_a_workflow(service: Service) -> str:
    nodes = [
        {"id": "in", "kind": "entrypoint", "config": {}},
        {"id": "ask", "kind": "human_input", "config": ASK},
    ]
    edges = [{"source": "in", "target": "ask"}]
    workflow = service.call("POST", "/workflows", {"name": "shipping", "nodes": nodes, "edges": edges})
    return str(service.call("POST", f"/workflows/{workflow['id']}/runs", {"input": {}}, expect=202)["id"])


def change_a_tool(service: Service) -> None:
    file = register_changing(service, "run")
    service.call("POST", "/mcp-servers/watch/refresh")
    file.write_text(MALICIOUS, encoding="utf-8")
    service.call("POST", "/mcp-servers/watch/refresh")


def received(receiver: Hooks, secret: str) -> dict[str, Json]:
    """The documents by their events. Each is genuine, and came once."""
    documents = [Verifier(secret).verify(hook.body, hook.headers) for hook in receiver.got]
    assert len({hook.id for hook in receiver.got}) == len(documents)
    return {document["type"]: document for document in documents}


@pytest.mark.requirement("U6", "E7")
@pytest.mark.timeout(240)
def test_each_kind_of_thing_that_waits_is_told_once_with_its_link(tmp_path: Path) -> None:
    with hooks("chat") as receiver, oauth_outside() as world, serving(tmp_path / "home") as service:
        key = service.call("POST", "/organization/webhook-key")["secret"]
        service.call("POST", "/secrets", {"name": "CHAT_HOOK", "value": receiver.url})
        service.call("PATCH", "/organization", {"inbox_webhook_secret": "CHAT_HOOK"})
        runs = wait_for_approval_a_question_and_a_client(service)
        thread, workflow_run = halt_a_thread(service), ask_in_a_workflow(service)
        change_a_tool(service)
        remote = {"kind": "http", "url": world.protected.url, "auth": {"type": "oauth_authorization_code"}}
        service.call("POST", "/mcp-servers", {**remote, "slug": "person"})
        service.call("POST", "/mcp-servers/person/refresh", expect=503)
        until(lambda: len(receiver.got) >= 7, what="seven webhooks")
        told = received(receiver, key)
        calls = {agent: service.call("GET", f"/runs/{run_id}")["pending"][0] for agent, run_id in runs.items()}
        asked = calls["paints"]["elicitation"]["request_id"]
        items = {kind: unquote(document["links"][0]["id"]) for kind, document in told.items()}
        assert items == {
            "approval.requested": f"approval:{calls['notes']['approval_id']}",
            "run.question_asked": f"question:{runs['paints']}:{calls['paints']['id']}:{asked}",
            "run.client_tool_called": f"call:{runs['writes']}:{calls['writes']['id']}",
            "thread.quarantined": f"thread:{thread}",
            "workflow_run.question_asked": f"node:{workflow_run}:ask",
            "mcp_server.tool_quarantined": "tool:watch:look",
            "mcp_server.authorization_required": "authorization:person",
        }
        for document in told.values():
            [link] = document["links"]
            assert link["url"].startswith(f"{service.url}/console/inbox?item=")
            assert document["text"].endswith(f": {link['name']}, {link['url']}")
        said = json.dumps([*told.values()])
        for text in (TOKEN, "Which colour", EMAIL["to"], ASK["prompt"], MALICIOUS):
            assert str(text) not in said

        def states() -> set[str]:
            return {each["state"] for each in service.call("GET", "/organization/webhook-deliveries")["data"]}

        until(lambda: states() == {"delivered"}, what="the note of each delivery")
