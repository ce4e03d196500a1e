"""The service over HTTP with in-memory adapters: the app, keys of every role in two organizations, and a worker."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

import httpx
from litestar import Litestar
from litestar.testing import AsyncTestClient
from litestar.types import Receive, Scope, Send

from application.agents.agent_checks import AgentChecks
from application.agents.create_agent import CreateAgent
from application.agents.delete_agent import DeleteAgent
from application.agents.get_agent import GetAgent
from application.agents.list_agent_versions import ListAgentVersions
from application.agents.list_agents import ListAgents
from application.agents.update_agent import UpdateAgent
from application.audit.list_audit_events import ListAuditEvents
from application.identity.authenticate import Authenticate
from application.identity.create_api_key import CreateApiKey
from application.identity.list_api_keys import ListApiKeys
from application.identity.revoke_api_key import RevokeApiKey
from application.identity.token_cache import TokenCache
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.get_mcp_server import GetMcpServer
from application.mcp.get_mcp_server_logs import GetMcpServerLogs
from application.mcp.get_mcp_server_status import GetMcpServerStatus
from application.mcp.get_mcp_server_tools import GetMcpServerTools
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.list_mcp_servers import ListMcpServers
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.test_mcp_server import TestMcpServer
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from application.runs.cancel_run import CancelRun
from application.runs.queries import GetRun, GetRunEvents, GetRunMessages, ListRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.watch_run import WatchRun
from application.secrets.delete_secret import DeleteSecret
from application.secrets.list_secrets import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.get_thread import GetThread
from application.threads.list_messages import ListMessages
from application.threads.list_threads import ListThreads
from application.tools.list_tools import ListTools
from application.tools.tool_catalog import ToolCatalog, ToolCatalogSettings
from domain.identity.role import Role
from domain.ids import ApiKeyId, OrganizationId, RunId
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.memory.agents import InMemoryAgentStore
from infrastructure.memory.audit import InMemoryAuditLog
from infrastructure.memory.identity import InMemoryIdentityStore
from infrastructure.memory.journal import InMemoryRunJournal
from infrastructure.memory.leases import InMemoryRunLeases
from infrastructure.memory.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from infrastructure.memory.mcp_installer import InMemoryMcpInstaller
from infrastructure.memory.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from infrastructure.memory.runs import InMemoryRunStore
from infrastructure.memory.secrets import InMemorySecretStore, InMemorySecretVault
from infrastructure.memory.state import InMemoryState
from infrastructure.memory.surroundings import SequentialIds, StepClock
from infrastructure.memory.threads import InMemoryThreadStore
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from infrastructure.secret_keys import GivenKeyRing
from interfaces.http.app import create_app
from interfaces.http.use_cases import UseCases
from tests.builders import ORG, OTHER_ORG, a_displayable_call, a_key, an_organization
from tests.contract.run_steps import answer_step, claim, finish_step, reply_step, suspend_step
from tests.contract.stores import Stores

MODEL = "scripted:demo.yaml"
OTHER_ADMIN = "dgm_admin-of-the-other-organization"


def token_of(role: Role) -> str:
    """The token of the key that has this role in ORG."""
    return f"dgm_{role.value}"


class ModelsThat:
    """A `ModelDirectory` that knows some models."""

    def __init__(self, *known: str) -> None:
        self._known = known

    def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        return None if model in self._known else f"there is no model {model!r}"


class Act(StrEnum):
    """What the worker does with a run it is rung for."""

    REST = "rest"
    FINISH = "finish"
    ASK = "ask"
    """Ask the client to show an email; finish once that is settled."""


class ObedientWorker:
    """A `RunQueue` whose worker takes a run up within `submit` and does as it is told."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.act = Act.FINISH
        self.submitted: list[RunId] = []

    async def submit(self, run_id: RunId) -> None:
        self.submitted.append(run_id)
        if self.act is Act.REST:
            return
        claimed = await claim(self._stores, run_id)
        journal = self._stores.journal
        if self.act is Act.FINISH or claimed.open_calls:
            if claimed.open_calls:
                await journal.commit(claimed.lease, answer_step(claimed.run, *claimed.open_calls))
            reply = reply_step(claimed.run, text="Done.")
            await journal.commit(claimed.lease, reply)
            await journal.commit(claimed.lease, finish_step(reply.run))
            return
        call = a_displayable_call(run_id=run_id)
        await journal.commit(claimed.lease, reply_step(claimed.run, call))
        await journal.commit(claimed.lease, suspend_step(claimed.run, call))


@dataclass(slots=True)
class ReadyUnless:
    """A `Readiness` with the given problems."""

    missing: tuple[str, ...] = ()

    async def problems(self) -> tuple[str, ...]:
        return self.missing


@dataclass(slots=True, kw_only=True)
class Service:
    """A running service over in-memory tables."""

    app: Litestar
    client: AsyncTestClient[Litestar]
    state: InMemoryState
    stores: Stores
    worker: ObedientWorker
    connections: InMemoryMcpConnections
    readiness: ReadyUnless
    wakeups: InProcessWakeups

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
        """One request, with the key of ORG's admin unless another token (or None) is given."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        if json is not None:
            return await self.client.request(method, path, json=json, headers=sent)
        return await self.client.request(method, path, content=content, headers=sent)


class House:
    """An app over in-memory tables. Building one is what costs time, so tests share it, each with fresh tables."""

    def __init__(self, *, heartbeat_s: float = 15.0) -> None:
        self._state = InMemoryState()
        self._wakeups = InProcessWakeups()
        self._stores = _stores(self._state, self._wakeups)
        self._worker = ObedientWorker(self._stores)
        self._connections = InMemoryMcpConnections()
        self._use_cases = _use_cases(self._stores, self._worker, self._connections)
        self._readiness = ReadyUnless()
        self._app = create_app(self._use_cases, readiness=self._readiness, version="1.2.3", heartbeat_s=heartbeat_s)

    @asynccontextmanager
    async def service(self) -> AsyncIterator[Service]:
        """A service with two organizations: ORG with a key of each role, OTHER_ORG with an admin key."""
        vars(self._state).update(vars(InMemoryState()))
        _add_keys(self._state)
        files = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))}, stderr="started\n")
        vars(self._connections).update(vars(InMemoryMcpConnections({"files": files})))
        self._worker.act = Act.FINISH
        self._worker.submitted.clear()
        self._readiness.missing = ()
        async with AsyncTestClient(self._app) as client:
            yield Service(
                app=self._app,
                client=client,
                state=self._state,
                stores=self._stores,
                worker=self._worker,
                connections=self._connections,
                readiness=self._readiness,
                wakeups=self._wakeups,
            )


def _add_keys(state: InMemoryState) -> None:
    for organization_id in (ORG, OTHER_ORG):
        state.organizations[organization_id] = an_organization(organization_id)
    keys = [a_key(ApiKeyId(f"key_{role.value}"), token=token_of(role), role=role) for role in Role]
    keys.append(a_key(ApiKeyId("key_other_admin"), organization_id=OTHER_ORG, token=OTHER_ADMIN))
    state.keys = {key.id: key for key in keys}


def _stores(state: InMemoryState, wakeups: InProcessWakeups) -> Stores:
    return Stores(
        threads=InMemoryThreadStore(state),
        agents=InMemoryAgentStore(state),
        servers=InMemoryMcpServerStore(state),
        catalogs=InMemoryMcpCatalogStore(state),
        identity=InMemoryIdentityStore(state),
        audit=InMemoryAuditLog(state),
        secrets=InMemorySecretStore(state),
        runs=InMemoryRunStore(state, wakeups),
        leases=InMemoryRunLeases(state, wakeups),
        journal=InMemoryRunJournal(state, wakeups),
        wakeups=wakeups,
    )


def _use_cases(stores: Stores, worker: ObedientWorker, connections: InMemoryMcpConnections) -> UseCases:
    clock = StepClock()
    ids = SequentialIds()
    models = ModelsThat(MODEL)
    tokens = TokenCache(capacity=100)
    catalog = ToolCatalog(
        native_tools={},
        displayable_tools={tool.type: tool for tool in DISPLAYABLE_TOOLS},
        servers=stores.servers,
        catalogs=stores.catalogs,
        connections=connections,
        settings=ToolCatalogSettings(),
    )
    checks = AgentChecks(models=models, native_tools=catalog, servers=stores.servers)
    agents, servers, threads, runs = stores.agents, stores.servers, stores.threads, stores.runs
    register = RegisterMcpServer(servers=servers, clock=clock, ids=ids)
    installer = InMemoryMcpInstaller(clock=clock, ids=ids)
    installs = ServerInstalls(
        installer=installer, servers=servers, connections=connections, audit_log=stores.audit, clock=clock, ids=ids
    )
    statuses = ServerStatuses(connections=connections, installs=installs, installer=installer)
    return UseCases(
        authenticate=Authenticate(identities=stores.identity, cache=tokens),
        create_agent=CreateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        update_agent=UpdateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        get_agent=GetAgent(agents=agents),
        list_agents=ListAgents(agents=agents),
        list_agent_versions=ListAgentVersions(agents=agents),
        delete_agent=DeleteAgent(agents=agents, clock=clock, ids=ids),
        register_mcp_server=register,
        update_mcp_server=UpdateMcpServer(servers=servers, connections=connections, clock=clock, ids=ids),
        get_mcp_server=GetMcpServer(servers=servers),
        list_mcp_servers=ListMcpServers(servers=servers),
        delete_mcp_server=DeleteMcpServer(
            servers=servers, connections=connections, installs=installs, clock=clock, ids=ids
        ),
        test_mcp_server=TestMcpServer(
            servers=servers, connections=connections, audit_log=stores.audit, clock=clock, ids=ids
        ),
        refresh_mcp_server=RefreshMcpServer(servers=servers, catalogs=stores.catalogs, connections=connections),
        disconnect_mcp_server=DisconnectMcpServer(servers=servers, connections=connections, statuses=statuses),
        install_mcp_server=InstallMcpServer(servers=servers, installs=installs, installer=installer, statuses=statuses),
        uninstall_mcp_server=UninstallMcpServer(
            servers=servers, installs=installs, statuses=statuses, connections=connections, clock=clock, ids=ids
        ),
        import_mcp_servers=ImportMcpServers(register=register),
        get_mcp_server_tools=GetMcpServerTools(servers=servers, catalogs=stores.catalogs),
        get_mcp_server_status=GetMcpServerStatus(servers=servers, statuses=statuses),
        get_mcp_server_logs=GetMcpServerLogs(servers=servers, connections=connections, installer=installer),
        list_tools=ListTools(
            catalog=catalog, agents=agents, servers=servers, catalogs=stores.catalogs, connections=connections
        ),
        create_thread=CreateThread(threads=threads, clock=clock, ids=ids),
        get_thread=GetThread(threads=threads),
        list_threads=ListThreads(threads=threads),
        list_messages=ListMessages(threads=threads),
        append_message=AppendMessage(threads=threads, clock=clock, ids=ids),
        delete_thread=DeleteThread(threads=threads),
        start_run=StartRun(runs=runs, agents=agents, models=models, queue=worker, clock=clock, ids=ids),
        resume_run=ResumeRun(runs=runs, queue=worker, clock=clock),
        cancel_run=CancelRun(runs=runs, queue=worker, clock=clock),
        watch_run=WatchRun(runs=runs, wakeups=stores.wakeups, clock=clock),
        get_run=GetRun(runs=runs),
        list_runs=ListRuns(runs=runs),
        get_run_messages=GetRunMessages(runs=runs),
        get_run_events=GetRunEvents(runs=runs),
        list_audit_events=ListAuditEvents(audit_log=stores.audit),
        create_api_key=CreateApiKey(identities=stores.identity, clock=clock, ids=ids),
        list_api_keys=ListApiKeys(identities=stores.identity),
        revoke_api_key=RevokeApiKey(identities=stores.identity, cache=tokens, clock=clock, ids=ids),
        set_secret=SetSecret(secrets=stores.secrets, forget_server=connections.forget, clock=clock, ids=ids),
        list_secrets=ListSecrets(secrets=stores.secrets),
        delete_secret=DeleteSecret(secrets=stores.secrets, clock=clock, ids=ids),
        rotate_secret_key=RotateSecretKey(
            vault=InMemorySecretVault(stale=300),
            key_ring=GivenKeyRing(),
            audit_log=stores.audit,
            clock=clock,
            ids=ids,
        ),
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
    """One request spoken in ASGI messages, so that a test decides when the body comes and when the client leaves.

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
        scope: dict[str, object] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
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
