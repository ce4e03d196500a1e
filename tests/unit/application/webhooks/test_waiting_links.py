"""Links of a webhook to what waits for a person."""

import json

import pytest

from application.webhooks.waiting_links import with_links
from domain.json_value import JsonObject

pytestmark = pytest.mark.requirement("U6")
CALL: JsonObject = {"id": "call_1", "name": "mcp__tickets__close", "approval_id": "apr_1"}
QUESTION: JsonObject = {"id": "call_2", "name": "show_form"}


def a_body(*pending: JsonObject) -> str:
    return json.dumps({"type": "run.requires_action", "data": {"id": "run_1", "pending": [*pending]}})


def test_an_approval_is_linked_in_the_inbox_and_other_calls_at_their_run() -> None:
    document = json.loads(with_links(a_body(CALL, QUESTION), "https://agents.example.com"))
    approval = "https://agents.example.com/console/inbox?item=approval:apr_1"
    run = "https://agents.example.com/console/runs/run_1"
    assert document["links"] == [
        {"id": "call_1", "name": "mcp__tickets__close", "url": approval},
        {"id": "call_2", "name": "show_form", "url": run},
    ]
    assert document["text"] == f"Run run_1 waits for a person: mcp__tickets__close, {approval}; show_form, {run}"
    assert document["data"] == json.loads(a_body(CALL, QUESTION))["data"]


def test_without_an_address_the_body_stays_as_it_is() -> None:
    assert with_links(a_body(CALL), None) == a_body(CALL)
