"""Messages: their JSON shape, what they carry, which calls are still open."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ErrorKind, ServiceError
from domain.ids import MessageId, RunId, ThreadId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
)
from domain.threads.message_json import content_from_json, content_to_json, message_to_json, timestamp
from tests.builders import a_message, a_tool_use

JSON_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=10,
)
IMAGES = st.builds(ImageContent, media_type=st.text(), data=st.text(), url=st.none()) | st.builds(
    ImageContent, media_type=st.text(), data=st.none(), url=st.text()
)
FILES = st.builds(
    FileContent, media_type=st.text(), name=st.none() | st.text(), data=st.text(), url=st.none()
) | st.builds(FileContent, media_type=st.text(), name=st.none() | st.text(), data=st.none(), url=st.text())
TOOL_USES = st.builds(
    ToolUse,
    id=st.builds(ToolCallId, st.text()),
    name=st.text(),
    params=st.dictionaries(st.text(), JSON_VALUES),
    malformed=st.none() | st.text(),
)
TOOL_RESULTS = st.builds(
    ToolResultContent,
    tool_id=st.builds(ToolCallId, st.text()),
    tool_name=st.text(),
    result=st.text(),
    is_error=st.booleans(),
    images=st.lists(IMAGES, max_size=2).map(tuple),
    files=st.lists(FILES, max_size=2).map(tuple),
)
CONTENTS: st.SearchStrategy[Content] = st.one_of(
    st.builds(TextContent, text=st.text()), IMAGES, FILES, TOOL_USES, TOOL_RESULTS
)


@pytest.mark.requirement("A1")
@given(content=CONTENTS)
def test_content_survives_the_way_through_json_text(content: Content) -> None:
    assert content_from_json(json.loads(json.dumps(content_to_json(content)))) == content


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        (TextContent(text="hi"), {"type": "text", "text": "hi"}),
        (
            ImageContent(media_type="image/png", data="iVBO"),
            {"type": "image", "media_type": "image/png", "data": "iVBO"},
        ),
        (
            ImageContent(media_type="image/png", url="https://example.org/a.png"),
            {"type": "image", "media_type": "image/png", "url": "https://example.org/a.png"},
        ),
        (
            ToolUse(id=ToolCallId("call_1"), name="echo", params={"a": [1]}),
            {"type": "tool_use", "id": "call_1", "name": "echo", "params": {"a": [1]}},
        ),
        (
            ToolUse(id=ToolCallId("call_1"), name="echo", params={}, malformed="{a"),
            {"type": "tool_use", "id": "call_1", "name": "echo", "params": {}, "malformed": "{a"},
        ),
        (
            ToolResultContent(tool_id=ToolCallId("call_1"), tool_name="echo", result="hi"),
            {"type": "tool_result", "tool_id": "call_1", "tool_name": "echo", "result": "hi", "is_error": False},
        ),
    ],
)
def test_each_kind_of_content_has_its_public_shape(content: Content, shape: JsonObject) -> None:
    assert content_to_json(content) == shape


def test_a_message_has_its_public_shape() -> None:
    message = Message(
        id=MessageId("msg_1"),
        thread_id=ThreadId("thr_1"),
        run_id=RunId("run_1"),
        role=Role.ASSISTANT,
        content=(TextContent(text="hi"),),
        created_at=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    )
    assert message_to_json(message) == {
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "created_at": "2026-01-02T03:04:05.000006Z",
        "run_id": "run_1",
    }


@pytest.mark.parametrize("data", [{}, {"type": "video"}, {"type": "text"}, {"type": "tool_use", "id": "call_1"}])
def test_what_is_not_content_is_refused(data: JsonObject) -> None:
    with pytest.raises((KeyError, ValueError)):
        content_from_json(data)


@given(moment=st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC)), hours=st.integers(-12, 14))  # noqa: DTZ001
def test_timestamps_are_utc_of_fixed_width_and_give_the_same_moment_back(moment: datetime, hours: int) -> None:
    elsewhere = moment.astimezone(timezone(timedelta(hours=hours))) if moment.year < 9999 else moment
    text = timestamp(elsewhere)
    assert text == timestamp(moment)
    assert len(text) == len("2026-01-02T03:04:05.000006Z")
    assert datetime.fromisoformat(text) == moment


@given(first=st.datetimes(timezones=st.just(UTC)), second=st.datetimes(timezones=st.just(UTC)))
def test_timestamps_sort_as_their_moments_do(first: datetime, second: datetime) -> None:
    assert (timestamp(first) < timestamp(second)) is (first < second)


@pytest.mark.parametrize(("data", "url"), [(None, None), ("iVBO", "https://example.org/a.png")])
def test_an_image_is_inline_or_by_url_and_not_both(data: str | None, url: str | None) -> None:
    with pytest.raises(ServiceError) as refused:
        ImageContent(media_type="image/png", data=data, url=url)
    assert (refused.value.code, refused.value.kind) == ("image_invalid", ErrorKind.INVALID)


def test_a_message_tells_its_text_its_calls_and_its_answers_apart() -> None:
    use = a_tool_use()
    image = ImageContent(media_type="image/png", data="iVBO")
    result = ToolResultContent(tool_id=use.id, tool_name=use.name, result="hi")
    message = a_message(content=(TextContent(text="a"), use, image, TextContent(text="b"), result))
    assert (message.text, message.tool_uses, message.tool_results) == ("ab", (use,), (result,))
