"""The service over HTTP with in-memory adapters: the app, keys of every role in two organizations, and a worker."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from litestar import Litestar
from litestar.testing import AsyncTestClient

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
from application.mcp.list_mcp_servers import ListMcpServers
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.test_mcp_server import TestMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from application.runs.cancel_run import CancelRun
from application.runs.queries import GetRun, GetRunEvents, GetRunMessages, ListRuns
from application.runs.resume_run import ResumeRun
from application.runs.start_run import StartRun
from application.runs.watch_run import WatchRun
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
from infrastructure.memory.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from infrastructure.memory.runs import InMemoryRunStore
from infrastructure.memory.state import InMemoryState
from infrastructure.memory.surroundings import SequentialIds, StepClock
from infrastructure.memory.threads import InMemoryThreadStore
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS
from interfaces.http.app import create_app
from interfaces.http.use_cases import UseCases
from tests.builders import ORG, OTHER_ORG, a_key, an_organization
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


class RecordingQueue:
    """A `RunQueue` that remembers whom it was rung for."""

    def __init__(self) -> None:
        self.submitted: list[RunId] = []

    async def submit(self, run_id: RunId) -> None:
        self.submitted.append(run_id)


@dataclass(slots=True)
class ReadyUnless:
    """A `Readiness` with the given problems."""

    missing: tuple[str, ...] = ()

    async def problems(self) -> tuple[str, ...]:
        return self.missing


@dataclass(slots=True, kw_only=True)
class Service:
    """A running service. `client` sends as ORG's admin unless told otherwise by `as_`."""

    app: Litestar
    client: AsyncTestClient[Litestar]
    state: InMemoryState
    stores: Stores
    queue: RecordingQueue
    connections: InMemoryMcpConnections
    readiness: ReadyUnless
    wakeups: InProcessWakeups
    use_cases: UseCases

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


@asynccontextmanager
async def running_service(*, heartbeat_s: float = 15.0) -> AsyncIterator[Service]:
    """A service with two organizations: ORG with a key of each role, OTHER_ORG with an admin key."""
    state = InMemoryState()
    _add_keys(state)
    wakeups = InProcessWakeups()
    stores = _stores(state, wakeups)
    queue = RecordingQueue()
    connections = InMemoryMcpConnections(
        {"files": InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))}, stderr="started\n")}
    )
    use_cases = _use_cases(stores, queue, connections)
    readiness = ReadyUnless()
    app = create_app(use_cases, readiness=readiness, version="1.2.3", heartbeat_s=heartbeat_s)
    async with AsyncTestClient(app) as client:
        yield Service(
            app=app,
            client=client,
            state=state,
            stores=stores,
            queue=queue,
            connections=connections,
            readiness=readiness,
            wakeups=wakeups,
            use_cases=use_cases,
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
        runs=InMemoryRunStore(state, wakeups),
        leases=InMemoryRunLeases(state, wakeups),
        journal=InMemoryRunJournal(state, wakeups),
        wakeups=wakeups,
    )


def _use_cases(stores: Stores, queue: RecordingQueue, connections: InMemoryMcpConnections) -> UseCases:
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
    return UseCases(
        authenticate=Authenticate(identities=stores.identity, cache=tokens),
        create_agent=CreateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        update_agent=UpdateAgent(agents=agents, checks=checks, clock=clock, ids=ids),
        get_agent=GetAgent(agents=agents),
        list_agents=ListAgents(agents=agents),
        list_agent_versions=ListAgentVersions(agents=agents),
        delete_agent=DeleteAgent(agents=agents, clock=clock, ids=ids),
        register_mcp_server=RegisterMcpServer(servers=servers, clock=clock, ids=ids),
        update_mcp_server=UpdateMcpServer(servers=servers, connections=connections, clock=clock, ids=ids),
        get_mcp_server=GetMcpServer(servers=servers),
        list_mcp_servers=ListMcpServers(servers=servers),
        delete_mcp_server=DeleteMcpServer(servers=servers, connections=connections, clock=clock, ids=ids),
        test_mcp_server=TestMcpServer(
            servers=servers, connections=connections, audit_log=stores.audit, clock=clock, ids=ids
        ),
        refresh_mcp_server=RefreshMcpServer(servers=servers, catalogs=stores.catalogs, connections=connections),
        disconnect_mcp_server=DisconnectMcpServer(servers=servers, connections=connections),
        get_mcp_server_tools=GetMcpServerTools(servers=servers, catalogs=stores.catalogs),
        get_mcp_server_status=GetMcpServerStatus(servers=servers, connections=connections),
        get_mcp_server_logs=GetMcpServerLogs(servers=servers, connections=connections),
        list_tools=ListTools(
            catalog=catalog, agents=agents, servers=servers, catalogs=stores.catalogs, connections=connections
        ),
        create_thread=CreateThread(threads=threads, clock=clock, ids=ids),
        get_thread=GetThread(threads=threads),
        list_threads=ListThreads(threads=threads),
        list_messages=ListMessages(threads=threads),
        append_message=AppendMessage(threads=threads, clock=clock, ids=ids),
        delete_thread=DeleteThread(threads=threads),
        start_run=StartRun(runs=runs, agents=agents, models=models, queue=queue, clock=clock, ids=ids),
        resume_run=ResumeRun(runs=runs, queue=queue, clock=clock),
        cancel_run=CancelRun(runs=runs, queue=queue, clock=clock),
        watch_run=WatchRun(runs=runs, wakeups=stores.wakeups, clock=clock),
        get_run=GetRun(runs=runs),
        list_runs=ListRuns(runs=runs),
        get_run_messages=GetRunMessages(runs=runs),
        get_run_events=GetRunEvents(runs=runs),
        list_audit_events=ListAuditEvents(audit_log=stores.audit),
        create_api_key=CreateApiKey(identities=stores.identity, clock=clock, ids=ids),
        list_api_keys=ListApiKeys(identities=stores.identity),
        revoke_api_key=RevokeApiKey(identities=stores.identity, cache=tokens, clock=clock, ids=ids),
    )
