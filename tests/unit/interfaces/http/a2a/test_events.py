"""Updates of a task, from the events of its run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from interfaces.http.a2a.events import TaskUpdates
from tests.builders import RUN, START, a_run
from tests.unit.interfaces.http.openai.test_response_events import (
    COMPLETED,
    Happened,
    completed,
    delta,
    results,
    started,
    use,
)

pytestmark = pytest.mark.requirement("X5")

CALL = "call_a"
DONE = replace(a_run(), status=RunStatus.COMPLETED, output="Found.")


def told(happened: Sequence[Happened], *, known: int = 0, run: Run = DONE) -> list[JsonObject]:
    """The first task after the first `known` events, then the updates of the others and the end."""
    events = [
        RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data) for seq, (kind, data) in enumerate(happened, 1)
    ]
    updates = TaskUpdates(run=replace(run, status=RunStatus.IN_PROGRESS, output=None, output_json=None))
    updates.read(events[:known])
    return [updates.task(updates.run), *updates.of(events[known:]), *updates.rest(run)]


def aggregated(updates: Sequence[JsonObject]) -> str:
    """The answer as a client puts it together."""
    first = cast(JsonObject, updates[0]["task"])
    said = str(_texts({"artifact": cast("list[JsonObject]", first["artifacts"])[0]})) if "artifacts" in first else ""
    for update in updates:
        if "artifactUpdate" in update:
            chunk = cast(JsonObject, update["artifactUpdate"])
            said = (said if chunk.get("append") else "") + _texts(chunk)
    return said


def _texts(chunk: JsonObject) -> str:
    artifact = cast(JsonObject, chunk["artifact"])
    return "".join(str(part["text"]) for part in cast("list[JsonObject]", artifact["parts"]))


LOOKS: list[Happened] = [
    delta("Look"),
    delta("ing."),
    completed("Looking.", use(CALL)),
    started(CALL),
    results((CALL, True)),
    delta("Fou", message_id="msg_2"),
    completed("Found.", message_id="msg_2"),
    COMPLETED,
]


@pytest.mark.parametrize("known", range(len(LOOKS) + 1))
def test_a_client_that_begins_anywhere_has_the_whole_answer(known: int) -> None:
    updates = told(LOOKS, known=known)
    assert aggregated(updates) == "Found."
    assert str(updates[-1]).count("TASK_STATE_COMPLETED") == 1


def test_a_call_is_shown_with_its_name_where_it_begins_and_ends() -> None:
    calls = [
        update["statusUpdate"]
        for update in told(LOOKS)
        if "metadata" in cast(JsonObject, update.get("statusUpdate", {}))
    ]
    named = [cast(JsonObject, update)["metadata"] for update in calls]
    assert named == [
        {"toolCall": {"id": CALL, "name": "mcp__files__read"}},
        {"toolCall": {"id": CALL, "name": "mcp__files__read", "failed": True}},
    ]


def test_a_discarded_reply_is_replaced_by_the_next_one() -> None:
    dropped: Happened = (RunEventType.MESSAGE_DISCARDED, {"message_id": "msg_1", "reason": "worker_lost"})
    updates = told(
        [delta("Fal"), dropped, delta("Found.", message_id="msg_2"), completed("Found.", message_id="msg_2")]
    )
    assert aggregated(updates) == "Found."


def test_an_answer_that_was_not_streamed_as_it_is_stored_is_replaced_at_the_end() -> None:
    by_schema = replace(DONE, output_json={"n": 1})
    last = told([delta('{"n": 1}'), completed('{"n": 1}'), COMPLETED], run=by_schema)[-2]
    artifact = cast(JsonObject, cast(JsonObject, last["artifactUpdate"])["artifact"])
    assert artifact["parts"] == [{"data": {"n": 1}, "mediaType": "application/json"}]
