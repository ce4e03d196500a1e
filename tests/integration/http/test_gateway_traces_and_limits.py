"""What a gateway call leaves in a trace and carries to its server, and how many a session may
make."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import pytest

from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.sessions.open_session import OpenedGatewaySession, OpenGatewaySessionCommand
from application.identity.key_limits import KeyLimits
from application.mcp.ports import McpProgress, McpReply
from application.system.rates import LocalRates
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, ToolCallId
from domain.policy.canary import CanaryToken
from domain.rate_limit import RateLimit
from infrastructure.container import Container
from infrastructure.tracing.span_ids import traceparent
from tests.builders import ORG, SERVER, a_server, an_agent, an_audit_event, an_organization
from tests.composition import stores_of
from tests.contract.stores import Stores
from tests.doubles.mcp_connections import (
    InMemoryMcpConnections,
    InMemoryMcpServer,
    InMemoryTool,
    Invocation,
    text_reply,
)
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.recording_tracer import RecordingTracer
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.integration.http.service import a_service_container, known_keys
from tests.integration.http.tables import InMemoryTables

ECHO = "mcp__files__echo"
ADMIN = Principal(organization_id=ORG, key_id=ApiKeyId("key_admin"), role=Role.ADMIN)
SECRET = "zanzibar-4711"


@dataclass(slots=True, kw_only=True)
class Harness:
    """The use cases, a session, and what can be seen of its calls."""

    container: Container
    opened: OpenedGatewaySession
    tracer: RecordingTracer
    connections: InMemoryMcpConnections
    stores: Stores

    def call(self, **arguments: object) -> CallGatewayToolCommand:
        return CallGatewayToolCommand(session=self.opened.session, name=ECHO, arguments=dict(arguments))  # type: ignore[arg-type]


@asynccontextmanager
async def a_harness(*, answer: str = "hi", limits: KeyLimits | None = None) -> AsyncIterator[Harness]:
    tables, tracer = InMemoryTables(), RecordingTracer()
    connections = InMemoryMcpConnections(
        {"files": InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply(answer))})}
    )
    async with tables.open([an_organization(ORG)], known_keys()):
        container = a_service_container(tables, connections=connections, tracer=tracer)
        if limits is not None:
            container.key_limits.override(limits)
        stores = stores_of(container)
        await stores.servers.add(a_server(), an_audit_event(201))
        agent = an_agent(mcp_servers=("files",), canary_tokens=(CanaryToken(id="vault", secret=SECRET),))
        await stores.agents.add(agent, an_audit_event(202))
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        opened = await container.open_gateway_session().execute(wanted)
        yield Harness(container=container, opened=opened, tracer=tracer, connections=connections, stores=stores)


@pytest.mark.requirement("G1", "F5")
async def test_each_call_is_a_trace_of_its_own_which_its_server_is_told_of() -> None:
    async with a_harness() as harness:
        await harness.container.call_gateway_tool().execute(harness.call(n=1))
        await harness.container.call_gateway_tool().execute(harness.call(n=2))

        session = harness.opened.session
        first, second = harness.tracer.spans(session.id)
        assert (first.name, first.trace_name, first.session_id) == (
            "mcp_tool__echo",
            "gateway_session",
            session.thread_id,
        )
        assert (first.input, first.output, first.error) == ({"n": 1}, "hi", None)
        assert first.metadata["tool_name"] == ECHO
        assert (first.metadata["tool_type"], first.metadata["server_id"]) == ("mcp_tool", SERVER)
        assert first.trace_id != second.trace_id
        assert first.span_id != second.span_id
        sent = [recorded.call.meta or {} for recorded in harness.connections.calls]
        assert [meta["traceparent"].split("-")[2] for meta in sent] == [
            f"{one.span_id:016x}" for one in (first, second)
        ]
        call_id = ToolCallId(str(first.metadata["tool_call_id"]))
        assert sent[0]["traceparent"] == traceparent(call_id, call_id)


@pytest.mark.requirement("G1")
async def test_a_caller_with_a_trace_of_its_own_goes_on_with_that() -> None:
    async with a_harness() as harness:
        theirs = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01", "tracestate": "vendor=1"}
        await harness.container.call_gateway_tool().execute(replace(harness.call(), meta=theirs))

        [recorded] = harness.connections.calls
        assert (recorded.call.meta or {})["traceparent"] == theirs["traceparent"]
        assert (recorded.call.meta or {})["tracestate"] == "vendor=1"


@pytest.mark.requirement("C4", "G1")
@pytest.mark.parametrize("leaks_in", ["arguments", "result"])
async def test_no_trace_holds_a_canary_token(leaks_in: str) -> None:
    async with a_harness(answer=f"The key is {SECRET}." if leaks_in == "result" else "hi") as harness:
        with pytest.raises(ServiceError) as caught:
            await harness.container.call_gateway_tool().execute(
                harness.call(n=SECRET if leaks_in == "arguments" else 1)
            )

        assert caught.value.code == "gateway_session_halted"
        assert SECRET not in repr(harness.tracer.spans(harness.opened.session.id))
        assert SECRET not in repr(await harness.stores.gateway_ledger.calls_of(ORG, harness.opened.session.id))


@pytest.mark.requirement("C4", "F5")
async def test_a_canary_token_ends_the_session_though_the_call_that_it_was_seen_in_is_given_up() -> None:
    is_told = asyncio.Event()

    async def leaks_and_goes_on(invocation: Invocation) -> McpReply:
        await invocation.report_progress(McpProgress(progress=1.0, message=f"The key is {SECRET}."))
        is_told.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    heard: list[McpProgress] = []

    async def hear(progress: McpProgress) -> None:
        heard.append(progress)

    async with a_harness() as harness:
        harness.connections.servers["files"].tools = {"echo": InMemoryTool(answer=leaks_and_goes_on)}
        calling = asyncio.create_task(
            harness.container.call_gateway_tool().execute(replace(harness.call(n=1), on_progress=hear))
        )
        async with asyncio.timeout(60):
            await is_told.wait()
            calling.cancel()
            with suppress(asyncio.CancelledError):
                await calling
        with pytest.raises(ServiceError) as caught:
            await harness.container.gateway_access().open(harness.opened.token)
        assert (caught.value.code, heard) == ("token_invalid", [])


@pytest.mark.requirement("F5")
async def test_a_session_is_held_to_the_services_rate_limit_and_told_when_to_come_back() -> None:
    clock = FixedClock()
    async with a_harness(
        limits=KeyLimits(
            every=RateLimit(calls=2, per_s=60.0),
            rates=LocalRates(clock=clock),
            organizations=InMemoryOrganizationStore(InMemoryState()),
        )
    ) as harness:
        access, token = harness.container.gateway_access(), harness.opened.token
        await access.open(token)
        await access.open(token)
        with pytest.raises(ServiceError) as caught:
            await access.open(token)
        assert (caught.value.code, caught.value.kind) == ("rate_limited", ErrorKind.LIMIT)
        assert int(caught.value.extra["retry_after_s"]) == 30

        clock.advance(30)
        assert await access.open(token) == harness.opened.session
