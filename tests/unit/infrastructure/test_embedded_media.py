"""Files inside values of traces: kind and size in their place."""

import json

import pytest

from domain.json_value import JsonValue
from infrastructure.tracing.embedded_media import messages_without_media, without_media

URI = "data:image/png;base64,AAAA"
DESCRIBED = "data:image/png;base64 (4 characters)"


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (URI, DESCRIBED),
        ([URI, {"url": URI}], [DESCRIBED, {"url": DESCRIBED}]),
        ({"media_type": "image/png", "data": "AAAA"}, {"media_type": "image/png", "characters": 4}),
        ({"inline_data": {"mime_type": "a/b", "data": "AAAA"}}, {"inline_data": {"mime_type": "a/b", "characters": 4}}),
        ({"inlineData": {"mimeType": "a/b", "data": "AAAA"}}, {"inlineData": {"mimeType": "a/b", "characters": 4}}),
    ],
)
def test_a_file_becomes_its_kind_and_size_also_in_text_that_is_json(value: JsonValue, described: JsonValue) -> None:
    assert without_media(value) == described
    if not isinstance(value, str):
        assert json.loads(str(without_media(f" {json.dumps(value)}"))) == described


@pytest.mark.parametrize(
    "value",
    [
        *("plain", "data: none", "data:text/plain,hello", "{data: no JSON", "[" * 100_000 + "data:", None, 3, True),
        *({"data": "AAAA"}, {"media_type": "image/png", "data": 3}, '{"data":  1}'),
    ],
)
def test_anything_else_stays_as_it_is(value: JsonValue) -> None:
    assert without_media(value) == value


def test_strings_of_a_message_are_described_and_not_read_as_json() -> None:
    message = messages_without_media({"role": "user", "content": [{"text": URI}, {"text": json.dumps([URI])}]})

    assert message == {"role": "user", "content": [{"text": DESCRIBED}, {"text": json.dumps([URI])}]}
