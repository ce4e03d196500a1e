"""Tool results off the wire, as replies of ours."""

import base64
from typing import Any

import pytest

from application.mcp.ports import ContentBlock, ContentKind, McpFailure, McpFailureKind
from domain.threads.message import FileContent, ImageContent
from infrastructure.mcp.connections.content import read_reply
from infrastructure.mcp.text import clean, clean_value
from infrastructure.mcp.transports.value_count import MAX_VALUES

PNG = base64.b64encode(b"x" * 3000).decode()


def only_block(block: dict[str, Any]) -> ContentBlock:
    [read] = read_reply({"content": [block]}).content
    return read


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("block", "kind", "text"),
    [
        ({"type": "text", "text": "hello"}, ContentKind.TEXT, "hello"),
        ({"type": "image", "data": PNG, "mimeType": "image/png"}, ContentKind.IMAGE, "image/png, 2 KiB"),
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, ContentKind.AUDIO, "audio/wav, 3 bytes"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, ContentKind.RESOURCE, "inside"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA", "mimeType": "application/zip"}},
            ContentKind.RESOURCE,
            "file:///a (application/zip, 3 bytes)",
        ),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a.txt"},
            ContentKind.RESOURCE_LINK,
            "a.txt (file:///a)",
        ),
    ],
)
def test_each_kind_of_block_is_read_or_described(block: dict[str, Any], kind: ContentKind, text: str) -> None:
    read = only_block(block)
    assert (read.kind, read.text) == (kind, text)


def test_an_image_is_kept_as_one() -> None:
    read = only_block({"type": "image", "data": PNG, "mimeType": "image/png"})
    assert read.image == ImageContent(media_type="image/png", data=PNG)


@pytest.mark.requirement("H5")
def test_audio_and_pdfs_are_kept_as_files_and_images_of_resources_as_images() -> None:
    assert only_block({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}).file == FileContent(
        media_type="audio/wav", data="AAAA"
    )
    resource = {"uri": "file:///a/report.pdf", "blob": "AAAA", "mimeType": "application/pdf"}
    assert only_block({"type": "resource", "resource": resource}).file == FileContent(
        media_type="application/pdf", name="report.pdf", data="AAAA"
    )
    picture = only_block({"type": "resource", "resource": {**resource, "mimeType": "image/png"}})
    assert (picture.image, picture.file) == (ImageContent(media_type="image/png", data="AAAA"), None)
    archive = only_block({"type": "resource", "resource": {**resource, "mimeType": "application/zip"}})
    assert (archive.image, archive.file) == (None, None)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "image", "data": PNG, "mimeType": "text/html; \nx"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": PNG},
    ],
)
def test_what_only_claims_to_be_an_image_is_described_instead(block: dict[str, Any]) -> None:
    read = only_block(block)
    assert (read.kind, read.image) == (ContentKind.IMAGE, None)
    assert read.text


@pytest.mark.parametrize("block", [None, "text", {}, {"type": "hologram"}, {"type": "text"}, {"type": ["text"]}])
def test_a_block_that_cannot_be_read_is_named_and_its_siblings_stand(block: object) -> None:
    left_out, kept = read_reply({"content": [block, {"type": "text", "text": "kept"}]}).content
    assert left_out.text.startswith("[content left out: ")
    assert kept.text == "kept"


@pytest.mark.requirement("B11")
def test_control_characters_and_halves_of_pairs_are_cleaned_everywhere() -> None:
    reply = read_reply(
        {
            "content": [{"type": "text", "text": "a\x1b[31m\tb\r\n\x85c\ud83d"}],
            "structuredContent": {"k\x00ey": ["v\x07al", 1, None, {"deep": "\x7f"}]},
        }
    )
    assert reply.content[0].text == "a[31m\tb\nc\N{REPLACEMENT CHARACTER}"
    assert reply.structured == {"key": ["val", 1, None, {"deep": ""}]}


@pytest.mark.requirement("B11", "A5")
def test_texts_among_large_values_are_cleaned_like_single_ones() -> None:
    for code in (*range(0x180), 0x2028, 0xD800, 0xDFFF, 0x10FFFF):
        text = f"a{chr(code)}\\u{chr(code)}"
        assert clean_value({"rows": [1, {text: text}]}) == {"rows": [1, {clean(text): clean(text)}]}
    for odd in (10**40, "\\u0000"):
        assert clean_value([odd]) == [odd]


def test_structured_content_alone_is_a_reply() -> None:
    reply = read_reply({"structuredContent": [1, 2], "isError": True})
    assert (reply.content, reply.structured, reply.is_error) == ((), [1, 2], True)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": "text"},
        {"content": [], "isError": "yes"},
        {"content": [], "resultType": "input_required"},
        {"content": [], "resultType": "task"},
    ],
)
def test_a_result_that_is_none_of_the_protocol_s_is_an_invalid_reply(result: dict[str, Any]) -> None:
    with pytest.raises(McpFailure) as raised:
        read_reply(result)
    assert raised.value.kind is McpFailureKind.INVALID_REPLY


@pytest.mark.requirement("A6", "B3")
@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "x"}] * MAX_VALUES},
        {"structuredContent": {"rows": [0] * MAX_VALUES}},
        {"structuredContent": {"rows": [[{"a": [1]}]] * (MAX_VALUES // 4)}},
    ],
)
def test_a_result_of_too_many_values_is_refused(result: dict[str, Any]) -> None:
    with pytest.raises(McpFailure) as raised:
        read_reply(result)
    assert raised.value.kind is McpFailureKind.TOO_LARGE


def test_as_many_values_as_a_result_may_have_are_read() -> None:
    rows = [0] * (MAX_VALUES - 3)  # the result, the object and the list are the others
    assert read_reply({"structuredContent": {"rows": rows}}).structured == {"rows": rows}
