"""The service over HTTP: the app over the tables of a test, keys of every role in two
organizations, and a worker."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, cast

import httpx
from litestar import Litestar
from litestar.testing import AsyncTestClient
from litestar.types import Receive, Scope, Send

from application.gateway.calls.clear_call import ApprovalWaits
from application.runs.sealed_input import sealed
from application.system.readiness import Obstacle
from domain.identity.api_key import ApiKey
from domain.identity.role import Role
from domain.ids import ApiKeyId, McpServerId, RunId
from domain.mcp.elicitation import Elicitation, InputRound
from domain.policy.approvers import Approvers
from domain.runs.ledger import ToolCallState
from domain.runs.provider_error import ProviderError
from domain.runs.run import RunStatus
from domain.runs.turn_end import turn_end
from domain.tools.result import ToolResult
from infrastructure.container import Container
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.secrets.secret_box import SecretBox
from infrastructure.settings import Settings
from interfaces.asgi import create_app
from interfaces.gateway.streams import StreamLimits
from tests.approval_builders import awaiting_approval_call
from tests.builders import (
    ORG,
    OTHER_ORG,
    START,
    a_displayable_call,
    a_key,
    a_settled_call,
    a_tool_call,
    an_organization,
)
from tests.composition import BOX_KEY, a_container, stores_of
from tests.contract.run_steps import answer_step, asking_step, claim, finish_step, reply_step, settle_step, suspend_step
from tests.contract.stores import Stores
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.secrets import InMemorySecretVault
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import StepClock
from tests.integration.http.documented import assert_documented
from tests.integration.http.tables import InMemoryTables, Tables

OWN_ADDRESS = "http://agents.example.com"
"""The host is that of the public URL of `the_settings`."""
NO_WAIT = ApprovalWaits(resumable_s=0.0, last_s=0.0)
COLOUR = InputRound(
    number=1,
    questions=(
        Elicitation(
            request_id="colour",
            message="Which colour?",
            schema={"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
        ),
    ),
)
STALE = 300
"""Secret values that wait for the newest key."""
PLATFORM = "dgm_platform-key-of-the-first-organization"
OTHER_ADMIN = "dgm_admin-of-the-other-organization"


def token_of(role: Role) -> str:
    """The token of the key that has this role in ORG."""
    return f"dgm_{role.value}"


def known_keys() -> list[ApiKey]:
    """ORG has a key of each role and a platform key, OTHER_ORG an admin key."""
    of_roles = [a_key(ApiKeyId(f"key_{role.value}"), token=token_of(role), role=role) for role in Role]
    platform = a_key(ApiKeyId("key_platform"), token=PLATFORM, platform=True)
    return [*of_roles, platform, a_key(ApiKeyId("key_other_admin"), organization_id=OTHER_ORG, token=OTHER_ADMIN)]


REFUSAL = ProviderError(status=400, code="invalid_request_error", message="tools.0: <b>too long</b>")


class Act(StrEnum):
    """What the worker does with a run it is rung for."""

    REST = "rest"
    FINISH = "finish"
    FAIL = "fail"
    """End as its model provider refuses the request."""
    ASK = "ask"
    """Ask the client to show an email; finish once that is settled."""
    ELICIT = "elicit"
    """Call a tool whose server asks for a colour."""
    APPROVE = "approve"
    """Call a tool that needs an approval."""
    BOTH = "both"
    """Ask the client to show an email, and call a tool that needs an approval."""


class ObedientWorker:
    """A `RunQueue` whose worker takes a run up within `submit` and does as it is told."""

    def __init__(self) -> None:
        self.stores: Stores | None = None
        """Of the container whose queue this is: they are made with the queue, so after it."""
        self.act = Act.FINISH
        self.question = COLOUR
        self.asking_server: McpServerId | None = None
        """What is asked by `Act.ELICIT`, and for which server."""
        self.approvers: tuple[Approvers, ...] = ()
        """Of approvals that the next runs need."""
        self.approvals_needed = 1
        self.result = ToolResult.succeeded("done")
        """Of calls that are executed."""
        self.submitted: list[RunId] = []
        self.workflow_runs: list[str] = []
        """Runs of workflows that were rung for; nobody takes them up."""

    async def submit(self, *run_ids: RunId) -> None:
        for run_id in run_ids:
            if run_id.startswith("wfr_"):
                self.workflow_runs.append(run_id)
            else:
                await self._take_up(run_id)

    async def _take_up(self, run_id: RunId) -> None:
        self.submitted.append(run_id)
        if self.act is Act.REST:
            return
        assert self.stores is not None
        claimed = await claim(self.stores, run_id)
        journal = self.stores.journal
        if self.act is Act.FAIL:
            await journal.commit(claimed.lease, finish_step(claimed.run, RunStatus.FAILED, said=REFUSAL))
            return
        if self.act is Act.FINISH or claimed.open_calls:
            done = self.result
            for call in claimed.open_calls:
                if call.result is None:
                    await journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(call, done)))
            if claimed.open_calls:
                answered = [replace(call, result=call.result or done) for call in claimed.open_calls]
                await journal.commit(claimed.lease, answer_step(claimed.run, *answered))
            reply = reply_step(claimed.run, text="Done.")
            await journal.commit(claimed.lease, reply)
            await journal.commit(claimed.lease, finish_step(reply.run))
            return
        if self.act is Act.ELICIT:
            asking = replace(
                a_tool_call(run_id=run_id, server_id=self.asking_server),
                state=ToolCallState.AWAITING_INPUT,
                elicitation=self.question.current,
                input=sealed(self.question, SecretBox([BOX_KEY])),
            )
            reply = reply_step(claimed.run, a_tool_call(run_id=run_id, server_id=self.asking_server))
            await journal.commit(claimed.lease, reply)
            await journal.commit(claimed.lease, asking_step(reply.run, asking))
            return
        if self.act in (Act.APPROVE, Act.BOTH):
            waiting = [
                awaiting_approval_call(
                    a_tool_call(run_id=run_id),
                    agent_version=claimed.agent.version,
                    approvers=self.approvers,
                    needed=self.approvals_needed,
                )
            ]
            waiting += [a_displayable_call(1, run_id=run_id)] if self.act is Act.BOTH else []
            reply = reply_step(claimed.run, *waiting)
            await journal.commit(claimed.lease, reply)
            # One after the other, so that lists of approvals have an order.
            at = START + timedelta(seconds=len(self.submitted))
            end = turn_end(reply.run, tuple(waiting), list(reply.messages), at=at)
            assert end is not None
            await journal.commit(claimed.lease, end)
            return
        call = a_displayable_call(run_id=run_id)
        reply = reply_step(claimed.run, call)
        await journal.commit(claimed.lease, reply)
        await journal.commit(claimed.lease, suspend_step(reply.run, call))


@dataclass(slots=True)
class ReadyUnless:
    """A `ReadinessCheck` with the given problems."""

    missing: tuple[Obstacle, ...] = ()

    async def problems(self) -> tuple[Obstacle, ...]:
        return self.missing


@dataclass(slots=True, kw_only=True)
class Service:
    """A running service. `state` is what its tables hold, where they are in memory."""

    app: Litestar
    client: AsyncTestClient[Litestar]
    state: InMemoryState
    stores: Stores
    worker: ObedientWorker
    connections: InMemoryMcpConnections
    readiness: ReadyUnless
    clock: StepClock

    @property
    def wakeups(self) -> InProcessWakeups:
        assert isinstance(self.stores.wakeups, InProcessWakeups)
        return self.stores.wakeups

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        content: bytes | AsyncGenerator[bytes, None] | None = None,
        token: str | None = token_of(Role.ADMIN),
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """One request, with the key of ORG's admin unless another token (or None) is given. Its
        response is held to the OpenAPI document."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        body: dict[str, Any] = {"content": content} if json is None else {"json": json}
        response = await self.client.request(method, path, headers=sent, **body)
        assert_documented(method, path, response)
        return response


def a_service_container(tables: Tables, settings: Settings | None = None, **doubles: object) -> Container:
    """The container over these tables, with an obedient worker."""
    container = a_container(settings, **doubles)
    tables.put_into(container)
    worker = ObedientWorker()
    container.run_queue.override(worker)
    worker.stores = stores_of(container)
    return container


class Harness:
    """An app over some tables. Building one is what costs time, so tests share it, each with fresh
    tables."""

    def __init__(
        self,
        tables: Tables | None = None,
        *,
        heartbeat_s: float = 15.0,
        holds: ApprovalWaits = NO_WAIT,
        stream_limits: StreamLimits | None = None,
        settings: Settings | None = None,
        **doubles: object,
    ) -> None:
        self._tables = tables or InMemoryTables()
        self._connections = InMemoryMcpConnections()
        self._vault = InMemorySecretVault()
        self._readiness = ReadyUnless()
        self._container = a_service_container(
            self._tables,
            settings,
            app_version="1.2.3",
            connections=self._connections,
            secret_vault=self._vault,
            database_readiness=self._readiness,
            approval_waits=holds,
            **doubles,
        )
        self._stores = stores_of(self._container)
        self._app = create_app(self._container, heartbeat_s=heartbeat_s, stream_limits=stream_limits)

    @asynccontextmanager
    async def service(self) -> AsyncIterator[Service]:
        """A service with two organizations: ORG with a key of each role, OTHER_ORG with an admin
        key."""
        files = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))}, stderr="started\n")
        vars(self._connections).update(vars(InMemoryMcpConnections({"files": files})))
        worker, clock = self._container.run_queue(), self._container.clock()
        assert isinstance(worker, ObedientWorker)
        assert isinstance(clock, StepClock)
        worker.act, worker.question, worker.asking_server = Act.FINISH, COLOUR, None
        worker.submitted.clear()
        self._vault.stale = STALE
        self._readiness.missing = ()
        self._container.row_notifications().interrupted()  # nothing of the test before is cached
        organizations = [an_organization(ORG), an_organization(OTHER_ORG)]
        async with (
            self._tables.open(organizations, known_keys()),
            AsyncTestClient(self._app, base_url=OWN_ADDRESS) as client,
        ):
            yield Service(
                app=self._app,
                client=client,
                state=self._tables.state,
                stores=self._stores,
                worker=worker,
                connections=self._connections,
                readiness=self._readiness,
                clock=clock,
            )


def problem_of(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """The problem document of a refusal, checked for what every one has."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    problem: dict[str, object] = response.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["type"] == f"urn:dragoman:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    return problem


def paths_of(problem: Mapping[str, object]) -> list[str]:
    """Where the input is wrong."""
    errors = cast("list[dict[str, str]]", problem["errors"])
    assert all(fault["message"] for fault in errors)
    return [fault["path"] for fault in errors]


@dataclass(slots=True)
class Conversation:
    """One request spoken in ASGI messages, so that a test decides when the body comes and when the
    client leaves.

    `left` set means the client has gone. `on_chunk` is told of every part of the answer's body.
    """

    app: Litestar
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str = token_of(Role.ADMIN)
    body: AsyncGenerator[bytes, None] | None = None
    status: int | None = None
    chunks: list[bytes] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def hold(self) -> None:
        """Until the answer is complete, or the service notices that the client has left."""
        sent = {"authorization": f"Bearer {self.token}", **self.headers}
        path, _, query = self.path.partition("?")
        scope: dict[str, object] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self.app(cast(Scope, scope), cast(Receive, self._receive), cast(Send, self._send))

    async def received(self, count: int) -> None:
        """Until that many chunks have come."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.chunks) >= count)

    async def _receive(self) -> dict[str, object]:
        if self.body is not None:
            async for chunk in self.body:
                return {"type": "http.request", "body": chunk, "more_body": True}
            self.body = None
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            self.status = cast(int, message["status"])
        elif message["body"]:
            async with self.arrived:
                self.chunks.append(cast(bytes, message["body"]))
                self.arrived.notify_all()
