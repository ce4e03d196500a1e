"""Images and files of results for clients of the gateway, where the server's own answer is not
passed on."""

import json

import pytest

from application.gateway.calls.answer import GatewayAnswer
from domain.threads.message import FileContent, ImageContent
from domain.tools.result import ToolResult
from interfaces.gateway.tool_shapes import answer_json

RESULT = ToolResult.succeeded(
    "two of three",
    (ImageContent(media_type="image/png", data="aGk="),),
    (
        FileContent(media_type="audio/wav", data="UklGRg=="),
        FileContent(media_type="application/pdf", name="a b.pdf", data="JVBERi0="),
    ),
)


@pytest.mark.requirement("H5")
def test_images_and_files_are_blocks_beside_the_text() -> None:
    assert answer_json(GatewayAnswer(result=RESULT), any_structure=True)["content"] == [
        {"type": "text", "text": "two of three"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
        {
            "type": "resource",
            "resource": {"uri": "attachment:///a%20b.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="},
        },
    ]


@pytest.mark.requirement("H5")
def test_they_survive_the_way_to_another_process() -> None:
    answer = GatewayAnswer(result=RESULT)
    assert GatewayAnswer.from_json(json.loads(json.dumps(answer.as_json()))) == answer
