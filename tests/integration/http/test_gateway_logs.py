"""What servers log about calls of the gateway: told on the stream of the call, to who asked for
it."""

import json

import httpx
import pytest

from application.mcp.log_messages import McpLogMessage
from application.mcp.ports import McpReply
from domain.audit.event import AuditAction
from domain.mcp.log_level import LogLevel
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.integration.http.gateway_caller import (
    ECHO,
    LEGACY,
    Caller,
    Json,
    a_modern_request,
    actions,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import Service
from tests.integration.http.test_gateway_clients import shaken

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SECRET = "zanzibar-4711"


async def logs(invocation: Invocation) -> McpReply:
    """A tool that logs what it is given."""
    if invocation.log is not None:
        for data in (invocation.arguments.get("say", "begun"), "done"):
            await invocation.log(McpLogMessage(level=LogLevel.ERROR, data=data, logger="echo"))
    return text_reply("logged")


@pytest.fixture
async def caller(service: Service) -> Caller:
    service.connections.servers["files"] = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=logs)})
    await an_agent(service, canary_tokens=[{"id": "vault", "token": SECRET}])
    return await opened(service)


def messages_of(response: httpx.Response) -> list[Json]:
    """What a stream holds, or the one answer."""
    if response.headers["content-type"] == "application/json":
        return [response.json()]
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def legacy_call(caller: Caller, sealed: str | None, **arguments: object) -> list[Json]:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": ECHO, "arguments": arguments}}
    return messages_of(await caller.send(call, headers={"mcp-protocol-version": LEGACY, "mcp-session-id": sealed}))


async def set_level(caller: Caller, sealed: str | None, level: object) -> httpx.Response:
    wanted = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": level}}
    return await caller.send(wanted, headers={"mcp-protocol-version": LEGACY, "mcp-session-id": sealed})


@pytest.mark.requirement("F5")
async def test_a_legacy_client_is_told_what_servers_log_once_it_has_set_a_level(caller: Caller) -> None:
    sealed, other = await shaken(caller), await shaken(caller)
    assert [message.get("id") for message in await legacy_call(caller, sealed)] == [7]
    assert (await set_level(caller, sealed, "warning")).json()["result"] == {}

    begun, done, answer = await legacy_call(caller, sealed)
    assert begun == {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "error", "data": "begun", "logger": "echo"},
    }
    assert (done["params"]["data"], answer["id"]) == ("done", 7)  # type: ignore[index]
    # It is the client's own wish: another one of the same token is told nothing.
    for quiet in (other, None):
        assert [message.get("id") for message in await legacy_call(caller, quiet)] == [7]


@pytest.mark.requirement("F5")
async def test_a_modern_client_says_with_each_call_what_it_wants_to_be_told(caller: Caller) -> None:
    request, headers = a_modern_request("tools/call", {"name": ECHO, "arguments": {}})
    request["params"]["_meta"][LOG_LEVEL] = "debug"  # type: ignore[index]
    told = messages_of(await caller.send(request, headers=headers))
    assert [message.get("method") for message in told] == ["notifications/message", "notifications/message", None]

    quiet = messages_of(await caller.modern("tools/call", {"name": ECHO, "arguments": {}}))
    assert [message.get("id") for message in quiet] == ["a"]
    # A client that takes no stream cannot be told anything before the answer.
    plain = await caller.send(request, headers={**headers, "accept": "application/json"})
    assert plain.json()["id"] == "a"


async def test_a_level_that_there_is_not_is_an_invalid_parameter(caller: Caller) -> None:
    sealed = await shaken(caller)
    for level in ("loud", 3, None):
        assert error_of(await set_level(caller, sealed, level)) == (200, -32602)
    assert error_of(await set_level(caller, None, "info")) == (200, -32600)
    request, headers = a_modern_request("tools/call", {"name": ECHO, "arguments": {}})
    request["params"]["_meta"][LOG_LEVEL] = "loud"  # type: ignore[index]
    assert error_of(await caller.send(request, headers=headers)) == (200, -32602)
    # The newer generation has no such method.
    assert error_of(await caller.modern("logging/setLevel", {"level": "info"})) == (404, -32601)


@pytest.mark.requirement("C4", "F5")
async def test_a_canary_token_in_a_log_message_is_not_told_and_ends_the_session(
    service: Service, caller: Caller
) -> None:
    sealed = await shaken(caller)
    await set_level(caller, sealed, "debug")

    async def leaks(invocation: Invocation) -> McpReply:
        assert invocation.log is not None
        for data in ("begun", f"the word is {SECRET}", "done"):
            await invocation.log(McpLogMessage(level=LogLevel.ERROR, data=data))
        return text_reply("logged")

    service.connections.servers["files"] = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=leaks)})
    told = await legacy_call(caller, sealed)

    assert SECRET not in str(told)
    assert [message["params"]["data"] for message in told if "params" in message] == ["begun"]  # type: ignore[index]
    assert told[-1]["error"]["data"]["code"] == "gateway_session_halted"  # type: ignore[index]
    assert AuditAction.SESSION_HALTED in await actions(service)
