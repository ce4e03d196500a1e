"""Files that tools returned, as artifacts of a task: what clients take, within bounds."""

import base64
from dataclasses import replace

import pytest

from domain.a2a.artifacts import OUTPUT_MODES, add_files
from domain.ids import ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.threads.attachments import MAX_ATTACHMENTS
from domain.threads.message import FileContent, ImageContent, Message, Role, ToolResultContent
from tests.builders import a_message, a_run

pytestmark = pytest.mark.requirement("X5")

DATA = base64.b64encode(b"x" * 100).decode()
PICTURE = ImageContent(media_type="image/png", data=DATA)
PAPER = FileContent(media_type="application/pdf", name="a.pdf", data=DATA)
LINKED = ImageContent(media_type="image/jpeg", url="https://example.com/a.jpg")


def returned(*images: ImageContent, files: tuple[FileContent, ...] = ()) -> Message:
    result = ToolResultContent(
        tool_id=ToolCallId("call_1"), tool_name="draw", result="Done.", images=images, files=files
    )
    return replace(a_message(2), role=Role.TOOL, content=(result,))


def asked(*modes: JsonValue) -> JsonObject:
    return {OUTPUT_MODES: list(modes)}


def test_each_file_is_an_artifact_after_the_answer() -> None:
    task: JsonObject = {"artifacts": [{"artifactId": "answer"}]}
    made, room = add_files(task, a_run(), [a_message(1), returned(PICTURE, LINKED, files=(PAPER,))], 1_000)
    about = {"toolCall": {"id": "call_1", "name": "draw"}}
    assert made == [
        {
            "artifactId": "call_1-0",
            "name": "draw",
            "parts": [{"raw": DATA, "mediaType": "image/png"}],
            "metadata": about,
        },
        {
            "artifactId": "call_1-1",
            "name": "draw",
            "parts": [{"url": LINKED.url, "mediaType": "image/jpeg"}],
            "metadata": about,
        },
        {
            "artifactId": "call_1-2",
            "name": "a.pdf",
            "parts": [{"raw": DATA, "filename": "a.pdf", "mediaType": "application/pdf"}],
            "metadata": about,
        },
    ]
    assert (task["artifacts"], room) == ([{"artifactId": "answer"}, *made], 800)


@pytest.mark.parametrize(
    ("modes", "taken"),
    [
        ((), 2),
        (("*/*",), 2),
        (("text/plain", "image/*"), 1),
        (("application/pdf",), 1),
        (("image/png", "application/pdf"), 2),
        (("text/plain", "application/json"), 0),
    ],
)
def test_a_client_gets_the_media_types_that_it_takes(modes: tuple[str, ...], taken: int) -> None:
    task: JsonObject = {}
    made, _ = add_files(task, replace(a_run(), client_request=asked(*modes)), [returned(PICTURE, files=(PAPER,))])
    assert len(made) == taken
    assert ("artifacts" in task, "metadata" in task) == (taken > 0, False)


def test_files_beyond_the_bounds_are_counted() -> None:
    task: JsonObject = {}
    made, room = add_files(task, a_run(), [returned(PICTURE, PICTURE, LINKED)], 150)
    assert ([artifact["artifactId"] for artifact in made], room) == (["call_1-0", "call_1-2"], 50)
    assert task["metadata"] == {"filesLeftOut": 1}
    many, _ = add_files(task, a_run(), [returned(*[LINKED] * (MAX_ATTACHMENTS + 3))])
    assert (len(many), task["metadata"]) == (MAX_ATTACHMENTS, {"filesLeftOut": 3})
