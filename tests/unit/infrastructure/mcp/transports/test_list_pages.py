"""Large pages of tools: taken apart without decoding their entries."""

import json
from typing import Any

import msgspec
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from infrastructure.mcp.transports.list_pages import page_of
from infrastructure.mcp.transports.stdio_framing import read_counted

pytestmark = pytest.mark.requirement("S3")

TOOLS = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}, "description": "a,]}"} for number in range(500)]


def a_reply(result: Any, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "call-7", "result": result, **more}).encode()


def test_entries_of_a_large_page_stay_text() -> None:
    page = page_of(a_reply({"tools": TOOLS, "nextCursor": "2", "_meta": {"a": 1}}))
    assert page is not None
    call_id, result = page
    assert (call_id, result["nextCursor"]) == ("call-7", "2")
    assert {type(entry) for entry in result["tools"]} == {msgspec.Raw}
    assert [json.loads(bytes(entry)) for entry in result["tools"]] == TOOLS


@pytest.mark.parametrize(
    "text",
    [
        a_reply({"tools": TOOLS[:10]}),
        a_reply({"tools": [0] * 500_000}),
        a_reply({"tools": {"a": TOOLS}}),
        a_reply({"tools": TOOLS, "nextCursor": 2}),
        a_reply({"content": TOOLS}),
        a_reply({"tools": TOOLS}, error={"code": 1, "message": "m"}),
        a_reply({"tools": TOOLS})[:-2],
        json.dumps({"id": 1, "result": {"tools": TOOLS}}).encode(),
    ],
    ids=["small", "too many", "an object", "no cursor", "no list", "an error", "cut", "not 2.0"],
)
def test_other_replies_are_read_as_a_whole(text: bytes) -> None:
    assert page_of(text) is None


def test_only_the_reply_to_a_request_for_a_list_is_a_page() -> None:
    settled: list[tuple[int | str, dict[str, Any]]] = []

    def settle(call_id: int | str, result: dict[str, Any]) -> bool:
        settled.append((call_id, result))
        return True

    text = a_reply({"tools": TOOLS})
    assert read_counted(text, settle, lambda call_id: call_id == "call-7") == ([], 0)
    ([], values) = read_counted(text, settle, lambda _: False)
    assert [type(result["tools"][0]) for _, result in settled] == [msgspec.Raw, dict]
    assert values > 2_000
    ([item], _) = read_counted(text, None, lambda _: True)
    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCResponse)
    assert isinstance(item.message.result["tools"][0], msgspec.Raw)
