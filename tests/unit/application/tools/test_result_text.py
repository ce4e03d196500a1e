"""Results of tools as the model reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.mcp.ports import ContentBlock, ContentKind, McpReply
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut, reply_result, value_text
from domain.json_value import JsonValue
from domain.threads.attachments import MAX_ATTACHED_BYTES, MAX_ATTACHMENTS, PDF
from domain.threads.message import FileContent, ImageContent
from domain.tools.result import ToolResult

PICTURE = ImageContent(media_type="image/png", data="aGk=")


def block(kind: ContentKind, text: str = "", image: ImageContent | None = None) -> ContentBlock:
    return ContentBlock(kind=kind, text=text, image=image)


def reply(*content: ContentBlock, structured: JsonValue = None) -> McpReply:
    return McpReply(is_error=False, content=content, structured=structured)


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        ({"a": [1, "ü"]}, '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'),
        ([], "[]"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_strings_stay_and_everything_else_becomes_indented_json(value: JsonValue, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.requirement("A6")
def test_texts_are_joined_and_images_kept() -> None:
    answer = reply(
        block(ContentKind.TEXT, "one"),
        block(ContentKind.IMAGE, "image/png, 2 bytes", PICTURE),
        block(ContentKind.TEXT, "two"),
    )
    assert reply_result(answer) == ToolResult.succeeded(text="one\ntwo", images=(PICTURE,))


@pytest.mark.requirement("A6")
def test_what_cannot_be_shown_is_described() -> None:
    answer = reply(
        block(ContentKind.AUDIO, "audio/wav, 12 KiB"),
        block(ContentKind.RESOURCE_LINK, "notes (file:///notes)"),
        block(ContentKind.RESOURCE, "the resource's text"),
        block(ContentKind.IMAGE, "image/tiff, unreadable"),
        block(ContentKind.TEXT, "text"),
    )
    assert reply_result(answer) == ToolResult.succeeded(
        text="text\naudio/wav, 12 KiB\nnotes (file:///notes)\nthe resource's text\nimage/tiff, unreadable"
    )


@pytest.mark.requirement("A6", "H5")
def test_files_are_kept_and_only_resources_are_named_beside_them() -> None:
    audio = FileContent(media_type="audio/wav", data="aGk=")
    report = FileContent(media_type=PDF, name="report.pdf", data="aGk=")
    answer = reply(
        ContentBlock(kind=ContentKind.AUDIO, text="audio/wav, 2 bytes", file=audio),
        ContentBlock(kind=ContentKind.RESOURCE, text="file:///report.pdf (application/pdf, 2 bytes)", file=report),
    )
    assert reply_result(answer) == ToolResult.succeeded(
        text="file:///report.pdf (application/pdf, 2 bytes)", files=(audio, report)
    )


@pytest.mark.requirement("H5")
def test_what_is_beyond_the_bounds_of_a_message_is_described() -> None:
    blocks = [block(ContentKind.IMAGE, f"picture {n}", PICTURE) for n in range(MAX_ATTACHMENTS + 1)]
    result = reply_result(reply(*blocks))
    assert (len(result.images), result.text) == (MAX_ATTACHMENTS, f"picture {MAX_ATTACHMENTS}")
    large = ImageContent(media_type="image/png", data="A" * (MAX_ATTACHED_BYTES * 4 // 3 + 4))
    result = reply_result(reply(block(ContentKind.IMAGE, "image/png, 7169 KiB", large)))
    assert result == ToolResult.succeeded(text="image/png, 7169 KiB")


@pytest.mark.requirement("A6")
def test_structured_content_is_used_only_where_there_is_no_text() -> None:
    assert reply_result(reply(structured={"a": 1})).text == '{\n  "a": 1\n}'
    assert reply_result(reply(block(ContentKind.TEXT, ""), structured=[1])).text == "[\n  1\n]"
    assert reply_result(reply(block(ContentKind.TEXT, "said"), structured={"a": 1})).text == "said"
    image = block(ContentKind.IMAGE, "image/png, 2 bytes", PICTURE)
    assert reply_result(reply(image, structured={"a": 1})) == ToolResult.succeeded(
        text='{\n  "a": 1\n}', images=(PICTURE,)
    )


def test_a_reply_of_nothing_is_an_empty_text() -> None:
    assert reply_result(reply()) == ToolResult.succeeded(text="")


@pytest.mark.requirement("B11")
@given(text=st.text())
def test_cleaned_text_can_be_stored_and_sent_anywhere(text: str) -> None:
    clean = cleaned(text)
    clean.encode("utf-8")
    assert not any(ord(character) < 32 and character not in "\n\r\t" for character in clean)
    assert cleaned(clean) == clean


@pytest.mark.requirement("B11")
def test_cleaning_keeps_what_people_write() -> None:
    assert cleaned("a\tb\r\nc — ü 😀") == "a\tb\r\nc — ü 😀"
    assert cleaned("a\x00b\x1b[31mc\x7f\ud800") == "ab[31mc?"


@pytest.mark.requirement("A6")
def test_text_over_the_limit_is_cut_with_a_notice_of_how_much_is_missing() -> None:
    text = "x" * (TEXT_LIMIT_BYTES + 100)
    assert cut(text, TEXT_LIMIT_BYTES) == (
        "x" * TEXT_LIMIT_BYTES + f"\n[100 of {TEXT_LIMIT_BYTES + 100} bytes are missing here: the result was too long]"
    )
    assert cut("x" * TEXT_LIMIT_BYTES, TEXT_LIMIT_BYTES) == "x" * TEXT_LIMIT_BYTES


@pytest.mark.requirement("A6")
@given(text=st.text(min_size=1), limit=st.integers(1, 40))
def test_a_cut_never_breaks_a_character_and_counts_what_it_took(text: str, limit: int) -> None:
    size = len(text.encode("utf-8", "replace"))
    shown = cut(text, limit)
    if size <= limit:
        assert shown == text
        return
    kept, _, notice = shown.rpartition("\n[")
    missing = int(notice.split()[0])
    assert len(kept.encode()) + missing == size
    assert limit - 4 < len(kept.encode()) <= limit
