"""Links of a webhook to what waits for a person: pages that ask to sign in, and that decide nothing
by being opened."""

import json
from typing import cast
from urllib.parse import quote

from domain.json_value import JsonObject, JsonValue
from domain.webhooks.delivery import WebhookEvent


def with_links(body: str, address: str | None) -> str:
    """The body of a `run.requires_action` with `links` to the console of the service at this
    address, and `text`, which says it in a sentence for chats. Without an address the body as it
    is."""
    if address is None:
        return body
    document: JsonObject = json.loads(body)
    run = cast(JsonObject, document["data"])
    links = [_link(run, cast(JsonObject, call), address) for call in cast(list[JsonValue], run["pending"])]
    waiting = "; ".join(f"{link['name']}, {link['url']}" for link in links)
    return json.dumps(
        {**document, "text": f"Run {run['id']} waits for a person: {waiting}", "links": [*links]}, separators=(",", ":")
    )


def with_inbox_links(body: str, address: str | None) -> str:
    """The body of a notice with `links` to the item in the inbox, and `text`; without an address no
    links."""
    document: JsonObject = json.loads(body)
    waiting = [cast(JsonObject, each) for each in cast(list[JsonValue], document.pop("waiting"))]
    links: list[JsonValue] = [
        {
            "id": each["item"],
            "name": each["name"],
            "url": f"{address}/console/inbox?item={quote(str(each['item']), safe=':')}",
        }
        for each in waiting
        if address is not None
    ]
    said = ", ".join(str(each["name"]) for each in waiting)
    places = "".join(f", {cast(JsonObject, link)['url']}" for link in links)
    text = f"{_SENTENCES[WebhookEvent(str(document['type']))]}: {said}{places}"
    return json.dumps({**document, "text": text, "links": links}, separators=(",", ":"))


_SENTENCES = {
    WebhookEvent.APPROVAL_REQUESTED: "A call waits for approval",
    WebhookEvent.QUESTION_ASKED: "A workflow asks a person",
    WebhookEvent.TOOL_QUARANTINED: "A new or changed tool waits for approval",
    WebhookEvent.THREAD_QUARANTINED: "A canary token halted a thread",
    WebhookEvent.SERVER_ASKED: "An MCP server asks a person",
    WebhookEvent.CLIENT_TOOL_CALLED: "A call waits for its result",
    WebhookEvent.ACCOUNT_REQUIRED: "A person must connect an account",
    WebhookEvent.AUTHORIZATION_REQUIRED: "A person must authorize an MCP server",
}


def _link(run: JsonObject, call: JsonObject, address: str) -> JsonObject:
    """To the approval in the inbox, or to the page of the run, which has the form of its other
    calls."""
    approval = call.get("approval_id")
    page = f"runs/{run['id']}" if approval is None else f"inbox?item=approval:{approval}"
    return {"id": call["id"], "name": call["name"], "url": f"{address}/console/{page}"}
