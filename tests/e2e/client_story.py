"""What the tests of both clients meet: a service whose agents talk, wait for approvals, and show
letters."""

from collections.abc import Callable, Iterator
from itertools import cycle

from tests.e2e.service import Service, a_turn

TALK = "".join(f"{number} " for number in range(60))
LETTER = {"to": "ada@example.com", "subject": "Bees", "body": "They hum."}
NOTE = "mcp__watched__note"
A_REVIEW = {
    "name": "review",
    "nodes": [
        {"id": "start", "kind": "entrypoint"},
        {"id": "person", "kind": "human_input", "config": {"prompt": "{{start.text}}?", "schema": {"type": "boolean"}}},
        {"id": "out", "kind": "transform", "config": {"expression": "@", "input": ["{{start.text}}", "{{person}}"]}},
    ],
    "edges": [{"source": "start", "target": "person"}, {"source": "person", "target": "out"}],
}


def a_staff(service: Service) -> None:
    """`teller` talks and waits for approvals of two notes; `secretary` shows a letter. The workflow
    `review` asks a person."""
    service.watched_server("watched", trusted=True)
    model = service.script(
        "telling",
        a_turn(TALK, (NOTE, {"text": "one"}), (NOTE, {"text": "two"})),
        a_turn(TALK),
        delay_ms=10,
        chunk_chars=12,
    )
    asking = {NOTE: {"decision": "require_approval"}}
    service.agent("teller", model, mcp_servers=["watched"], tool_policies=asking)
    letters = service.script("letters", a_turn("Your letter.", ("send_email", LETTER)), a_turn("It was sent."))
    service.agent("secretary", letters, tools=["send_email"])
    service.call("POST", "/workflows", A_REVIEW)


def streams_cut_early() -> Callable[[str], int | None]:
    """Streams are cut after some events, or within the first; everything else passes."""
    sizes: Iterator[int] = cycle([300, 900, 1_700, 4_000])
    return lambda request: next(sizes) if "/stream " in request else None


def first_responses_lost(*requests: str) -> Callable[[str], int | None]:
    """The first response to each of these is lost entirely."""
    left = set(requests)

    def budget(request: str) -> int | None:
        found = next((each for each in left if request.startswith(each)), None)
        if found is None:
            return None
        left.remove(found)
        return 0

    return budget
