"""Chunks of the AI SDK, from the events of a run; and the message that they make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.threads.message import FileContent, ImageContent, TextContent
from interfaces.http.ai_sdk.chunks import Chunks
from interfaces.http.ai_sdk.ui_messages import answer_message, input_message
from interfaces.http.chats.shown import RunShown
from tests.builders import RUN, START, a_run
from tests.unit.interfaces.http.openai.test_response_events import (
    COMPLETED,
    STARTED,
    Happened,
    completed,
    delta,
    results,
    started,
    use,
    waits,
)

pytestmark = pytest.mark.requirement("X3")

CALL = "call_a"


def told(happened: Sequence[Happened]) -> list[JsonObject]:
    shown, chunks = RunShown(run=a_run()), Chunks(run=a_run(), address="http://here")
    given = [
        chunk
        for seq, (kind, data) in enumerate(happened, 1)
        for item in shown.of(RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data))
        for chunk in chunks.of(item)
    ]
    return [*given, *chunks.end(shown)]


def kinds(chunks: Sequence[JsonObject]) -> list[str]:
    return [str(chunk["type"]) for chunk in chunks]


def thought(text: str, message_id: str = "msg_1") -> Happened:
    return RunEventType.REASONING_DELTA, {"message_id": message_id, "text": text}


def test_each_reply_with_its_calls_is_a_step() -> None:
    looks = [thought("Hm."), delta("Looking."), completed("Looking.", use(CALL)), started(CALL), results((CALL, False))]
    chunks = told([*looks, completed("Found.", message_id="msg_2"), COMPLETED])
    assert kinds(chunks) == [
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "text-start",
        "text-delta",
        "reasoning-end",
        "text-end",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert chunks[-1]["messageMetadata"] == {"usage": {"inputTokens": 10, "outputTokens": 4}}
    message = answer_message(a_run(), chunks)
    assert [part["type"] for part in cast("list[JsonObject]", message["parts"])] == [
        "step-start",
        "reasoning",
        "text",
        "dynamic-tool",
        "step-start",
        "text",
    ]


def test_a_discarded_reply_resets_its_step_and_is_not_in_the_message() -> None:
    lost = RunEventType.MESSAGE_DISCARDED, cast(JsonObject, {"message_id": "msg_0", "reason": "worker_lost"})
    chunks = told([thought("Hm.", "msg_0"), delta("Ha", "msg_0"), STARTED, lost, completed("Whole."), COMPLETED])
    assert kinds(chunks)[4:9] == ["text-delta", "reset-step", "finish-step", "start-step", "text-start"]
    parts = cast("list[JsonObject]", answer_message(a_run(), chunks)["parts"])
    assert [part.get("text") for part in parts] == [None, None, "Whole."]


def test_a_question_of_a_server_is_a_text_with_a_link() -> None:
    asks = cast(JsonObject, {**use(CALL), "elicitation": {"message": "Which?"}})
    chunks = told([completed("", use(CALL)), started(CALL), waits(asks)])
    [text] = [str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta"]
    assert f"http://here/console/runs/{RUN}" in text
    assert chunks[-1]["finishReason"] == "tool-calls"


def test_progress_is_shown_and_in_no_message() -> None:
    progress = RunEventType.TOOL_PROGRESS, cast(JsonObject, {"tool_call_id": CALL, "progress": 1.0})
    chunks = told([completed("", use(CALL)), started(CALL), progress])
    assert chunks[-1] == {"type": "data-progress", "id": CALL, "data": {"progress": 1.0}, "transient": True}


@pytest.mark.parametrize(
    ("end", "last"),
    [
        ((RunEventType.RUN_INCOMPLETE, {"reason": "max_turns"}), {"type": "finish", "finishReason": "length"}),
        ((RunEventType.RUN_INCOMPLETE, {"reason": "refusal"}), {"type": "finish", "finishReason": "content-filter"}),
        ((RunEventType.RUN_HALTED, {"reason": "canary"}), {"type": "finish", "finishReason": "content-filter"}),
        ((RunEventType.RUN_CANCELLED, {}), {"type": "abort", "reason": "The run was cancelled."}),
        (
            (RunEventType.RUN_FAILED, {"error": {"code": "model_failed", "detail": "It broke."}}),
            {"type": "error", "errorText": "model_failed: It broke."},
        ),
    ],
)
def test_a_stream_says_how_the_run_ended_and_leaves_no_text_open(end: Happened, last: JsonObject) -> None:
    *before, ended = told([delta("Ha"), end])
    assert before[3]["type"] == "text-end"
    assert {name: ended[name] for name in last} == last


def test_input_is_text_and_files() -> None:
    content = (
        TextContent(text="See"),
        ImageContent(media_type="image/png", data="iVBO"),
        FileContent(media_type="application/pdf", name="a.pdf", url="https://example.com/a.pdf"),
    )
    assert input_message(replace(a_run(), input=content))["parts"] == [
        {"type": "text", "text": "See"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBO"},
        {"type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf", "filename": "a.pdf"},
    ]
