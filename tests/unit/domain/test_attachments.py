"""Images and files in messages: what they are taken for, how many, and how they are shown."""

import base64

import pytest

from domain.threads.attachments import (
    MAX_ATTACHED_BYTES,
    MAX_ATTACHMENTS,
    FileKind,
    attachment,
    kind_of_file,
    require_few_attachments,
    size_of,
    text_of,
    without_file_bytes,
)
from domain.threads.message import FileContent, ImageContent, TextContent, ToolResultContent
from domain.threads.message_json import content_to_json
from tests.builders import a_tool_use
from tests.refusals import refused

pytestmark = pytest.mark.requirement("H5")
PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("a.pdf", b"%PDF-1.7", "application/pdf"),
        ("a.txt", b"%PDF-1.7", "application/pdf"),
        ("not.pdf", b"hello", "text/plain"),
        ("a.MP3", b"ID3\0", "audio/mpeg"),
        ("a.csv", b"a,b", "text/csv"),
        ("Makefile", b"all:\n", "text/plain"),
        ("a.docx", b"PK\x03\x04\0", "application/octet-stream"),
        ("latin", b"caf\xe9", "application/octet-stream"),
    ],
)
def test_a_file_is_taken_for_what_its_beginning_or_its_name_says(name: str, content: bytes, media_type: str) -> None:
    data = base64.b64encode(content).decode()
    assert attachment(name, content) == FileContent(media_type=media_type, name=name, data=data)


def test_an_image_that_models_read_becomes_an_image() -> None:
    assert attachment("a.png", PNG) == ImageContent(media_type="image/png", data=base64.b64encode(PNG).decode())
    assert isinstance(attachment("a.bmp", b"BM\0"), FileContent)


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("application/pdf", FileKind.PDF),
        ("audio/ogg", FileKind.AUDIO),
        ("text/markdown", FileKind.TEXT),
        ("application/ld+json", FileKind.TEXT),
        ("image/svg+xml", FileKind.TEXT),
        ("application/zip", FileKind.OTHER),
    ],
)
def test_the_media_type_says_how_a_file_is_read(media_type: str, kind: FileKind) -> None:
    assert kind_of_file(media_type) is kind


@pytest.mark.parametrize("size", range(5))
def test_sizes_are_those_of_the_decoded_bytes(size: int) -> None:
    assert size_of(FileContent(media_type="a/b", data=base64.b64encode(b"x" * size).decode())) == size


def test_only_text_files_have_a_text_and_invalid_bytes_are_replaced() -> None:
    assert text_of(attachment_of("text/plain", b"\xef\xbb\xbfhi \xff")) == "hi �"
    assert text_of(attachment_of("application/pdf", b"%PDF")) is None
    assert text_of(FileContent(media_type="text/plain", url="https://example.org/a.txt")) is None


def attachment_of(media_type: str, content: bytes) -> FileContent:
    return FileContent(media_type=media_type, data=base64.b64encode(content).decode())


def test_number_and_size_of_attachments_are_bounded() -> None:
    small = attachment_of("application/zip", b"x")
    require_few_attachments([TextContent(text="a"), *[small] * MAX_ATTACHMENTS], "input")
    half = attachment_of("application/zip", b"x" * (MAX_ATTACHED_BYTES // 2))
    require_few_attachments([half, half], "input")
    for content in ([small] * (MAX_ATTACHMENTS + 1), [half, half, small]):
        with refused("attachments_too_large"):
            require_few_attachments(content, "input")


def test_files_are_shown_by_their_size_and_the_rest_as_it_is() -> None:
    file, linked = attachment_of("application/zip", b"xyz"), FileContent(media_type="a/b", url="https://x.example")
    image = ImageContent(media_type="image/png", data="aGk=")
    result = ToolResultContent(tool_id=a_tool_use().id, tool_name="t", result="", images=(image,), files=(file,))
    sized = {"type": "file", "media_type": "application/zip", "bytes": 3}
    assert without_file_bytes(content_to_json(file)) == sized
    assert without_file_bytes(content_to_json(result)) == {**content_to_json(result), "files": [sized]}
    for part in (linked, image, TextContent(text="data")):
        assert without_file_bytes(content_to_json(part)) == content_to_json(part)
