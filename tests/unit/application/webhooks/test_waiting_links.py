"""Links of a webhook to what waits for a person."""

import json

import pytest

from application.webhooks.waiting_links import with_inbox_links, with_links
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


NOTICE = json.dumps(
    {
        "type": "workflow_run.question_asked",
        "data": {"node_id": "ask me"},
        "waiting": [{"item": "node:wfr_1:ask me", "name": "ask me"}],
    }
)


def test_a_notice_has_a_link_to_its_item_and_a_sentence() -> None:
    url = "https://agents.example.com/console/inbox?item=node:wfr_1:ask%20me"
    assert json.loads(with_inbox_links(NOTICE, "https://agents.example.com")) == {
        "type": "workflow_run.question_asked",
        "data": {"node_id": "ask me"},
        "text": f"A workflow asks a person: ask me, {url}",
        "links": [{"id": "node:wfr_1:ask me", "name": "ask me", "url": url}],
    }


def test_a_notice_without_an_address_has_the_sentence_alone() -> None:
    document = json.loads(with_inbox_links(NOTICE, None))
    assert (document["text"], document["links"]) == ("A workflow asks a person: ask me", [])
