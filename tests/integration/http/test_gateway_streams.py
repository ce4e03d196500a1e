"""What clients of the gateway are told without asking: that lists and resources changed, for as
long as they may see them."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from domain.identity.role import Role
from interfaces.gateway.streams import StreamLimits
from tests.integration.http.gateway_caller import (
    HOST,
    LEGACY,
    Caller,
    Json,
    a_modern_request,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import Conversation, Harness, Service, token_of
from tests.integration.http.test_gateway_clients import shaken

NOTES = "mcp+files:file:///notes"
PATIENCE_S = 100.0
"""A thousand streams open together; the first of them is as late as the last."""
pytestmark = pytest.mark.requirement("F5")


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client with a session over an agent that has one server."""
    await an_agent(service)
    return await opened(service)


@dataclass(slots=True, kw_only=True)
class Stream:
    """One that is open. `told` waits for messages."""

    conversation: Conversation
    task: "asyncio.Task[None]"

    @property
    def messages(self) -> list[Json]:
        lines = b"".join(self.conversation.chunks).splitlines()
        return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]

    async def told(self, count: int) -> list[Json]:
        """The first `count` messages, once they have come."""
        async with asyncio.timeout(PATIENCE_S), self.conversation.arrived:
            await self.conversation.arrived.wait_for(lambda: len(self.messages) >= count)
        return self.messages

    async def ended(self) -> list[Json]:
        """All messages, once the service has ended the stream."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.shield(self.task)
        return self.messages

    async def leave(self) -> None:
        self.conversation.left.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task


@asynccontextmanager
async def streaming(
    caller: Caller, method: str = "GET", body: Json | None = None, headers: Mapping[str, str | None] | None = None
) -> AsyncIterator[Stream]:
    """A stream, once its head has come."""

    async def sent() -> AsyncGenerator[bytes, None]:
        yield json.dumps(body).encode()

    base = {"host": HOST, "content-type": "application/json", "accept": "application/json, text/event-stream"}
    said = {name: value for name, value in {**base, **(headers or {})}.items() if value is not None}
    conversation = Conversation(
        caller.service.app,
        method,
        f"/mcp{caller.query}",
        headers=said,
        token=caller.token or "",
        body=None if body is None else sent(),
    )
    stream = Stream(conversation=conversation, task=asyncio.create_task(conversation.hold()))
    try:
        async with asyncio.timeout(PATIENCE_S):
            await conversation.received(1)
        yield stream
    finally:
        await stream.leave()


async def changed_agent(service: Service, **settings: object) -> None:
    response = await service.call("PATCH", "/v1/agents/toolbox", json=settings)
    assert response.status_code == 200, response.text


async def ask(caller: Caller, sealed: str | None, method: str, params: Json) -> Json:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = await caller.send(message, headers={"mcp-session-id": sealed, "mcp-protocol-version": LEGACY})
    return dict(response.json())


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what a stream does beside its messages."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (nobody is told of it)
            await asyncio.sleep(0)


def say_updated(service: Service, uri: str) -> None:
    """The server says that a resource of its was updated."""
    for _, watched, tell in list(service.connections.watched):
        if uri.startswith(watched):
            tell(uri)


async def test_a_legacy_client_is_told_when_its_agent_has_other_tools(service: Service, caller: Caller) -> None:
    async with streaming(caller, headers={"mcp-session-id": await shaken(caller)}) as stream:
        # Written, but nothing of it can be seen.
        await changed_agent(service, instructions="Be brief.")
        await changed_agent(service, tool_policies={"mcp__files__echo": {"decision": "deny"}})
        assert await stream.told(1) == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
        await changed_agent(service, mcp_servers=[])
        assert [message["method"] for message in (await stream.told(3))[1:]] == [
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ]


async def test_a_modern_client_is_told_what_it_asked_for_and_no_more(service: Service, caller: Caller) -> None:
    message, headers = a_modern_request("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    async with streaming(caller, "POST", message, headers) as stream:
        [acknowledged] = await stream.told(1)
        assert acknowledged == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": {"promptsListChanged": True},
                "_meta": {"io.modelcontextprotocol/subscriptionId": "a"},
            },
        }
        await changed_agent(service, mcp_servers=[])
        _, changed = await stream.told(2)
        assert changed["method"] == "notifications/prompts/list_changed"
        assert changed["params"] == {"_meta": {"io.modelcontextprotocol/subscriptionId": "a"}}
        revoked = await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")
        assert revoked.status_code == 204
        *_, end = await stream.ended()
    assert (end["id"], end["result"]["_meta"]) == ("a", {"io.modelcontextprotocol/subscriptionId": "a"})  # type: ignore[index]
    assert len(stream.messages) == 3


async def test_a_legacy_client_is_told_of_resources_that_it_subscribed_to(service: Service, caller: Caller) -> None:
    sealed = await shaken(caller)
    assert (await ask(caller, sealed, "resources/subscribe", {"uri": NOTES}))["result"] == {}
    assert service.connections.watched == []
    async with streaming(caller, headers={"mcp-session-id": sealed}) as stream:
        assert [(slug, uri) for slug, uri, _ in service.connections.watched] == [("files", "file:///notes")]
        say_updated(service, "file:///notes/today")
        [updated] = await stream.told(1)
        assert (updated["method"], updated["params"]) == (
            "notifications/resources/updated",
            {"uri": "mcp+files:file:///notes/today"},
        )
        # While it listens, too; and what it wants no more is not watched.
        assert (await ask(caller, sealed, "resources/subscribe", {"uri": "mcp+files:file:///b"}))["result"] == {}
        assert (await ask(caller, sealed, "resources/unsubscribe", {"uri": NOTES}))["result"] == {}
        await until(lambda: [uri for _, uri, _ in service.connections.watched] == ["file:///b"])
        # Policy takes it away, and the list with it.
        await changed_agent(service, tool_policies={"mcp__files__resources": {"decision": "deny"}})
        assert (await stream.told(2))[1]["method"] == "notifications/resources/list_changed"
        assert service.connections.watched == []
        assert "error" in await ask(caller, sealed, "resources/subscribe", {"uri": NOTES})
        await changed_agent(service, tool_policies={})
        await stream.told(3)
        assert len(service.connections.watched) == 1
    assert service.connections.watched == []


async def test_a_modern_client_is_told_of_the_resources_that_it_may_see(service: Service, caller: Caller) -> None:
    wanted = [NOTES, "mcp+other:file:///x", "file:///notes", "mcp+files:" + "y" * 3_000]
    message, headers = a_modern_request("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
    async with streaming(caller, "POST", message, headers) as stream:
        [acknowledged] = await stream.told(1)
        assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [NOTES]}  # type: ignore[index]
        say_updated(service, "file:///notes")
        say_updated(service, "file:///notes")
        *_, updated = await stream.told(2)
        meta = {"io.modelcontextprotocol/subscriptionId": "a"}
        assert updated["params"] == {"uri": NOTES, "_meta": meta}
        assert len(stream.messages) == 2
    assert service.connections.watched == []


async def test_what_may_be_read_only_with_an_approval_cannot_be_subscribed_to(service: Service) -> None:
    await an_agent(
        service,
        tool_policies={"mcp__files__resources": {"decision": "require_approval"}},
        canary_tokens=[{"id": "vault", "token": "zanzibar-4711"}],
    )
    caller = await opened(service)
    sealed = await shaken(caller)
    refused = await ask(caller, sealed, "resources/subscribe", {"uri": NOTES})
    assert (refused["error"]["code"], refused["error"]["data"]["code"]) == (-32600, "content_denied")  # type: ignore[index]
    await changed_agent(service, tool_policies={})
    # A canary token reaches no server, whatever it is said to be the name of.
    leaking = await ask(caller, sealed, "resources/subscribe", {"uri": "mcp+files:file:///zanzibar-4711"})
    assert leaking["error"]["code"] == -32002  # type: ignore[index]
    unknown = await ask(caller, sealed, "resources/subscribe", {"uri": "mcp+nobody:file:///x"})
    assert unknown["error"]["code"] == -32002  # type: ignore[index]
    assert (await ask(caller, None, "resources/subscribe", {"uri": NOTES}))["error"]["code"] == -32600  # type: ignore[index]
    assert (await ask(caller, sealed, "resources/subscribe", {"uri": 3}))["error"]["code"] == -32602  # type: ignore[index]


async def test_a_name_that_a_server_makes_of_a_canary_token_is_not_told(service: Service) -> None:
    await an_agent(service, canary_tokens=[{"id": "vault", "token": "zanzibar-4711"}])
    caller = await opened(service)
    message, headers = a_modern_request("subscriptions/listen", {"notifications": {"resourceSubscriptions": [NOTES]}})
    async with streaming(caller, "POST", message, headers) as stream:
        await stream.told(1)
        say_updated(service, "file:///notes/zanzibar-4711")
        say_updated(service, "file:///notes/last")
        *_, updated = await stream.told(2)
    assert len(stream.messages) == 2
    assert updated["params"]["uri"] == f"{NOTES}/last"  # type: ignore[index]


async def test_a_stream_ends_with_its_session_its_client_or_its_key(service: Service, caller: Caller) -> None:
    sealed = await shaken(caller)
    runner = Caller(service=service, token=token_of(Role.RUNNER), query="?agent=toolbox")
    async with (
        streaming(caller, headers={"mcp-session-id": sealed}) as of_client,
        streaming(caller) as of_session,
        streaming(runner) as of_key,
    ):
        done = await caller.send(b"", method="DELETE", headers={"mcp-session-id": sealed})
        assert done.status_code == 204
        await of_client.ended()
        assert not of_session.task.done()
        await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")
        await of_session.ended()
        assert not of_key.task.done()
        assert (await service.call("DELETE", "/v1/api-keys/key_runner")).status_code == 200
        await of_key.ended()


async def test_a_stream_ends_when_a_canary_token_has_ended_the_session(service: Service) -> None:
    await an_agent(service, canary_tokens=[{"id": "vault", "token": "zanzibar-4711"}])
    caller = await opened(service)
    async with streaming(caller) as stream:
        await caller.legacy("tools/call", {"name": "mcp__files__echo", "arguments": {"text": "zanzibar-4711"}})
        assert await stream.ended() == []


async def test_of_several_streams_of_a_client_the_newest_is_told(service: Service, caller: Caller) -> None:
    headers = {"mcp-session-id": await shaken(caller)}
    async with streaming(caller, headers=headers) as first:
        async with streaming(caller, headers=headers) as second:
            await changed_agent(service, mcp_servers=[])
            await second.told(3)
        await changed_agent(service, mcp_servers=["files"])
        await first.told(3)
    assert (len(first.messages), len(second.messages)) == (3, 3)


async def test_what_is_no_stream_is_answered_as_such(service: Service, caller: Caller) -> None:
    assert error_of(await caller.send(b"", method="GET", headers={"accept": "application/json"})) == (406, -32600)
    assert error_of(await caller.send(b"", method="GET", headers={"mcp-session-id": "nobody's"})) == (404, -32600)
    modern = await caller.send(b"", method="GET", headers={"mcp-protocol-version": "2026-07-28"})
    assert (modern.status_code, modern.headers["allow"]) == (405, "GET, POST, DELETE")
    wrong: list[object] = [None, [], {"toolsListChanged": 1}, {"resourceSubscriptions": "x"}]
    for notifications in wrong:
        answer = await caller.modern("subscriptions/listen", {"notifications": notifications})
        assert error_of(answer) == (200, -32602)
    plain = await caller.modern("subscriptions/listen", {"notifications": {}}, accept="application/json")
    assert error_of(plain) == (406, -32600)
    assert error_of(await caller.modern("resources/subscribe", {"uri": NOTES})) == (404, -32601)


async def test_more_streams_than_there_may_be_are_refused_and_those_that_left_make_room() -> None:
    harness = Harness(stream_limits=StreamLimits(per_session=2, per_process=3))
    async with harness.service() as service:
        await an_agent(service)
        caller, other = await opened(service), await opened(service, agent_id="toolbox")
        async with streaming(caller), streaming(other):
            async with streaming(caller):
                of_process = await other.send(b"", method="GET")
                assert error_of(of_process) == (503, -32029)
                assert of_process.json()["error"]["data"]["retryAfterSeconds"] > 0
            async with streaming(caller):
                pass
        async with streaming(caller), streaming(caller):
            assert error_of(await caller.send(b"", method="GET")) == (429, -32029)
            listen, headers = a_modern_request("subscriptions/listen", {"notifications": {}})
            assert error_of(await caller.send(listen, headers=headers)) == (429, -32029)


async def test_a_thousand_streams_are_told_together_and_leave_nothing_behind() -> None:
    harness = Harness(stream_limits=StreamLimits(per_session=1_000))
    async with harness.service() as service:
        await an_agent(service)
        caller = await opened(service)
        before = len(asyncio.all_tasks())
        async with AsyncStreams(caller, 1_000) as streams:
            await changed_agent(service, mcp_servers=[])
            for stream in streams:
                await stream.told(3)
        assert len(asyncio.all_tasks()) == before
        async with streaming(caller) as stream:
            assert not stream.task.done()


class AsyncStreams:
    """Many at once."""

    def __init__(self, caller: Caller, count: int) -> None:
        self._contexts = [streaming(caller) for _ in range(count)]

    async def __aenter__(self) -> list[Stream]:
        return await asyncio.gather(*(context.__aenter__() for context in self._contexts))

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(context.__aexit__(None, None, None) for context in self._contexts))
