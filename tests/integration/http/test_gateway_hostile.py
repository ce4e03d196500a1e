"""Requests to the gateway that nobody well-behaved sends: each is answered, soon, with an error
that says what is wrong."""

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest
from litestar.types import Receive, Scope, Send

from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.identity.api_key import hash_token
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from tests.builders import ORG, an_audit_event
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.gateway_caller import (
    ECHO,
    HOST,
    LEGACY,
    MODERN,
    Caller,
    Json,
    a_modern_request,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import OTHER_ADMIN, Service, token_of

BOUND_S = 60.0
"""Far more than any of these takes, and far less than for ever."""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client with a session over an agent that has one server with the tool `echo`."""
    await an_agent(service)
    return await opened(service)


def nested(levels: int, opening: bytes = b'{"a":', closing: bytes = b"}") -> bytes:
    """A call whose arguments are this deep."""
    deep = opening * levels + b"1" + closing * levels
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"x":' % ECHO.encode()
    return head + deep + b"}}}"


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("levels", [130, 300, 600, 900, 990, 1_100, 40_000])
@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"a":', b"}]")])
async def test_a_body_that_is_nested_too_deeply_is_said_to_be(
    caller: Caller, levels: int, opening: bytes, closing: bytes
) -> None:
    async with asyncio.timeout(BOUND_S):
        response = await caller.send(nested(levels, opening, closing))
    assert error_of(response) == (400, -32700)
    assert "deep" in response.json()["error"]["message"]


@pytest.mark.requirement("F5")
async def test_arguments_may_be_nested_as_deep_as_a_body_may(service: Service, caller: Caller) -> None:
    async with asyncio.timeout(BOUND_S):
        answer = (await caller.send(nested(124))).json()
    assert answer["result"]["content"][0]["text"] == "hi"
    [made] = service.connections.calls
    assert json.dumps(made.call.arguments).count("{") == 125


@pytest.mark.requirement("F5")
async def test_brackets_in_texts_and_wide_bodies_are_not_depth(caller: Caller) -> None:
    values: tuple[object, ...] = ("[{" * 5_000, [[]] * 50_000, [{}] * 50_000)
    for value in values:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": ECHO, "arguments": {"x": value}},
        }
        async with asyncio.timeout(BOUND_S):
            assert (await caller.send(message)).json()["result"]["isError"] is False


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", (400, -32700)),
        (b"\xff\xfe", (400, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":"\xc3\x28","method":"ping"}', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', (400, -32700)),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), (400, -32700)),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":Infinity,"method":"ping"}', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', (400, -32600)),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', (400, -32600)),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', (400, -32600)),
        (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 5_000), (400, -32700)),
        (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"x" * 1_025), (400, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', (400, -32600)),
    ],
    ids=lambda value: repr(value)[:48],
)
async def test_what_is_no_message_is_told_apart(caller: Caller, body: bytes, expected: tuple[int, int]) -> None:
    async with asyncio.timeout(BOUND_S):
        assert error_of(await caller.send(body)) == expected


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("request_id", [0, -1, 2**63, "", "x" * 1_024, "🙂", "\x00"])
async def test_an_id_comes_back_as_it_was(caller: Caller, request_id: object) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "method": "ping"}
    response = await caller.send(message, headers={"mcp-protocol-version": LEGACY})
    assert response.json() == {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_numbers_that_json_does_not_have_are_refused(service: Service, caller: Caller, value: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{ECHO}","arguments":{{"n":{value}}}}}}}'
    assert error_of(await caller.send(body.encode())) == (400, -32700)
    assert not service.connections.calls


@pytest.mark.requirement("F5")
async def test_a_whole_number_beyond_64_bits_reaches_the_server_as_it_is(service: Service, caller: Caller) -> None:
    number = 10**40 + 1
    params: Json = {"name": ECHO, "arguments": {"n": number}}
    answer: Any = await caller.legacy("tools/call", params)
    assert answer["result"]["isError"] is False
    assert service.connections.calls[-1].call.arguments == {"n": number}


def twice(name: str, *values: str | bytes) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value if isinstance(value, bytes) else value.encode("latin-1")) for value in values]


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer."""

    status_code: int
    content: bytes
    headers: dict[bytes, bytes]

    def json(self) -> Any:
        return json.loads(self.content)


async def sent(caller: Caller, body: object, *headers: tuple[bytes, bytes]) -> Heard:
    """A request with just these headers, in this order, beside those that every request has unless
    they are given; past any client that would tidy them."""
    base = {
        "host": HOST,
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {caller.token}",
    }
    there = {name for name, _ in headers}
    plain = [(name.encode(), value.encode()) for name, value in base.items() if name.encode() not in there]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [*plain, *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    parts = iter([{"type": "http.request", "body": content, "more_body": False}])
    answered: list[Any] = []

    async def receive() -> Any:
        part = next(parts, None)
        return part if part is not None else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answered.append(message)

    async with asyncio.timeout(BOUND_S):
        await caller.service.app(cast(Scope, scope), cast(Receive, receive), cast(Send, send))
    whole = b"".join(message["body"] for message in answered[1:])
    return Heard(answered[0]["status"], whole, dict(answered[0]["headers"]))


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("authorization", ("Bearer dgs_other", None)),
        ("authorization", (None, "Bearer dgs_other")),
        ("host", (HOST, "evil.example")),
        ("host", ("evil.example", HOST)),
        ("origin", ("https://evil.example", f"https://{HOST}")),
        ("content-type", ("text/plain", "application/json")),
        ("mcp-protocol-version", (LEGACY, MODERN)),
    ],
)
async def test_a_header_that_comes_twice_with_different_values_is_refused(
    caller: Caller, name: str, values: tuple[str | None, ...]
) -> None:
    given = [value or f"Bearer {caller.token}" for value in values]
    response = await sent(caller, PING, *twice(name, *given))
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("name", ["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-param-x"])
async def test_a_routing_header_that_comes_twice_is_a_mismatch_even_if_both_are_right(
    caller: Caller, name: str
) -> None:
    message, fitting = a_modern_request("tools/call", {"name": ECHO, "arguments": {}})
    value = fitting.get(name) or "x"
    once = [(key.encode(), str(text).encode()) for key, text in fitting.items() if key != name]
    response = await sent(caller, message, *once, *twice(name, value, value))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == (-32600 if name == "mcp-protocol-version" else -32020)


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (twice("authorization", "Bearer " + "x" * 65_536), 401),
        (twice("authorization", b"Bearer dgs_\xff\xfe"), 401),
        (twice("authorization", "Bearer dgs_ümlaut"), 401),
        (twice("authorization", "Basic eDp5"), 401),
        (twice("authorization", "Bearer"), 401),
        (twice("mcp-protocol-version", "x" * 65_536), 400),
        (twice("mcp-protocol-version", b"2025-11-25\xff"), 400),
        (twice("mcp-session-id", "x" * 65_536), 404),
        (twice("mcp-session-id", b"\xff"), 404),
        (twice("content-type", b"application/json\xff"), 415),
        (twice("content-type", "x" * 65_536), 415),
        (twice("accept", "x" * 65_536), 406),
        (twice("host", "evil.example"), 403),
        (twice("host", "[::"), 403),
        (twice("host", ""), 403),
        (twice("host", b"\xe4gents.example.com"), 403),
        (twice("host", "x" * 65_536), 403),
        (twice("origin", "https://evil.example"), 403),
        (twice("origin", "null"), 403),
        (twice("origin", f"https://{HOST}.evil.example"), 403),
        (twice("origin", f"https://evil.example#{HOST}"), 403),
        (twice("origin", f"https://{HOST}@evil.example"), 403),
        (twice("x-whatever", "x" * 65_536), 200),
        (twice("x-whatever", b"\xff\xfe"), 200),
        (twice("content-length", "-1"), 200),
        (twice("content-length", b"\xb2"), 200),
        (twice("content-length", "9" * 5_000), 413),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_a_hostile_header_is_answered_by_its_status(
    caller: Caller, headers: list[tuple[bytes, bytes]], expected: int
) -> None:
    response = await sent(caller, PING, *headers)
    assert response.status_code == expected
    assert len(response.content) < 2_000
    if expected != 200:
        assert response.json()["jsonrpc"] == "2.0"


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "name", ["x" * 65_536, b"caf\xe9", "=?base64?" + "A" * 60_000 + "?=", "=?base64?%%%?=", "=?base64?gA==?="]
)
async def test_a_name_in_a_header_that_is_not_the_body_s_is_a_mismatch(caller: Caller, name: str | bytes) -> None:
    message, fitting = a_modern_request("tools/call", {"name": ECHO, "arguments": {}})
    once = [(key.encode(), str(text).encode()) for key, text in fitting.items() if key != "mcp-name"]
    response = await sent(caller, message, *once, *twice("mcp-name", name))
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


@pytest.mark.requirement("F5")
async def test_a_batch_is_as_large_as_it_may_be_and_each_message_answers_for_itself(caller: Caller) -> None:
    good: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    wrong: list[object] = [1, None, [], {"id": 2}, {"jsonrpc": "2.0", "id": None, "method": "ping"}]
    headers: dict[str, str | None] = {"mcp-protocol-version": "2025-03-26"}
    answers = (await caller.send([*wrong, *([good] * 45)], headers=headers)).json()
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32600] * 5 + [None] * 45
    for batch in ([], [good] * 51):
        refused = await caller.send(batch, headers=headers)
        assert error_of(refused) == (400, -32600)
        assert refused.json()["error"]["message"] == "A batch has 1 to 50 messages."


@pytest.mark.requirement("C6", "F5")
async def test_tokens_of_others_and_of_roles_that_may_not_open_nothing(service: Service, caller: Caller) -> None:
    service.connections.servers["files"] = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))})
    asking = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for token, query, status in (
        (OTHER_ADMIN, "?agent=toolbox", 200),  # of another organization: it has no such agent
        (token_of(Role.VIEWER), "?agent=toolbox", 403),
        (token_of(Role.RUNNER), "", 200),
        (token_of(Role.RUNNER), "?agent=", 200),
        (token_of(Role.RUNNER), "?agent=" + "x" * 60_000, 200),
        (token_of(Role.RUNNER), "?agent=%ff%00", 200),
        ("DGS_" + (caller.token or "").removeprefix("dgs_"), "", 401),
        ((caller.token or "") + "x", "", 401),
        ((caller.token or "")[:-1], "", 401),
    ):
        response = await Caller(service=service, token=token, query=query).send(asking)
        assert response.status_code == status, (token, query)
        assert "error" in response.json()
    assert not service.connections.calls


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(("lasts_s", "status"), [(-1, 401), (0, 401), (1, 200)])
async def test_a_token_opens_nothing_from_the_moment_its_session_expires(
    service: Service, caller: Caller, lasts_s: int, status: int
) -> None:
    [open_session] = (await service.stores.gateway_sessions.page(ORG, PageRequest(limit=10))).items
    token = f"dgs_of-a-session-that-lasts-{lasts_s}"
    ending = replace(
        open_session,
        id=GatewaySessionId("gws_ending"),
        token_hash=hash_token(token),
        expires_at=open_session.created_at + timedelta(seconds=lasts_s),  # which is now, and stands still
    )
    audit = an_audit_event(1, action=AuditAction.GATEWAY_SESSION_CREATED)
    await service.stores.gateway_sessions.add(ending, audit, thread=None)
    for _ in range(2):
        response = await replace(caller, token=token).send(PING, headers={"mcp-protocol-version": LEGACY})
        assert response.status_code == status, response.text
