"""Files of desktop clients: what they are called there, with comments and trailing commas."""

import json

import pytest

from domain.json_value import JsonValue
from interfaces.client_files import listed_servers, plain_json

pytestmark = pytest.mark.requirement("B1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('// of mine\n{"a": /* one */ 1, // two\n "b": [1, 2,\n/* last */],\n}\n// end', {"a": 1, "b": [1, 2]}),
        (
            '{"url": "https://example.org/*", "b": "/* no */ // no, ]", }',
            {"url": "https://example.org/*", "b": "/* no */ // no, ]"},
        ),
        ('{"a": "\\\\", "b": "\\",}"}', {"a": "\\", "b": '",}'}),
        ("{} /* without end", {}),
    ],
    ids=["plain", "comments and commas", "inside of texts", "escapes", "a comment without end"],
)
def test_comments_and_trailing_commas_are_left_out(text: str, value: JsonValue) -> None:
    assert json.loads(plain_json(text)) == value


def test_what_is_wrong_is_where_it_is_in_the_file() -> None:
    text = '{/* one\n two */ "a": 1, // three\n  "b" 2,}'
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads(plain_json(text))
    assert (raised.value.lineno, raised.value.colno) == (3, 7)


@pytest.mark.parametrize("text", ['{"a":,}', "[1,,]", '{"a": "x'])
def test_nothing_else_becomes_json(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(plain_json(text))


@pytest.mark.parametrize("name", ["mcpServers", "servers", "context_servers"])
def test_servers_are_found_by_the_name_that_their_client_has_for_them(name: str) -> None:
    assert listed_servers({"theme": "dark", name: {"time": {}}}) == {"time": {}}


@pytest.mark.parametrize("document", [None, [], {}, {"mcpServers": []}])
def test_a_document_may_list_no_servers(document: JsonValue) -> None:
    assert listed_servers(document) is None
