"""OpenGatewaySession: creates a token for an external client: for the tools of an agent, of a run,
or of nodes of a workflow run."""

from dataclasses import dataclass, field
from datetime import timedelta

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry
from application.gateway.ports import GatewaySessionStore
from application.gateway.tools.tool_nodes import ChosenNodes, ToolNodes
from application.mcp.oauth_client import PublicAddress
from application.runs.ports import RunReader
from application.system.ports import Clock, IdSource
from domain.agents.agent import Agent
from domain.audit.event import AuditAction
from domain.errors import Violation, conflict, invalid, not_found
from domain.gateway.session import SESSION_TOKEN_PREFIX, GatewaySession, ToolNames
from domain.identity.api_key import TOKEN_PREFIX, Principal, hash_token
from domain.identity.permission import Permission
from domain.ids import GatewaySessionId, RunId, ThreadId, WorkflowRunId
from domain.json_value import JsonObject
from domain.runs.run import Run
from domain.teams import may_use
from domain.threads.thread import Thread

GATEWAY_PATH = "/mcp"
DEFAULT_TTL_S = 3_600
MAX_TTL_S = 30 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGatewaySessionCommand:
    """Exactly one of `agent` (id or name), `run_id` and `workflow_run_id` is set. `node_ids`
    selects the workflow run's tools (see `ToolNodes`). `ttl_s` is the token's lifetime."""

    principal: Principal
    agent: str | None = None
    run_id: RunId | None = None
    workflow_run_id: WorkflowRunId | None = None
    node_ids: tuple[str, ...] | None = None
    ttl_s: int = DEFAULT_TTL_S
    names: ToolNames = ToolNames.NAMESPACED


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGatewaySession:
    """The session, and its token, which is shown only once. `url` is where clients connect; None
    while the service does not listen."""

    session: GatewaySession
    token: str = field(repr=False)
    url: str | None


class OpenGatewaySession:
    """Rules:
    - Operators open sessions in their own organization. Audited `gateway_session.created`.
    - Only a hash of the token is stored.
    - Tools of a disabled agent or of an ended run are not opened.
    - A session of a run or a workflow run ends with it. Every session except one of a run has its
      own thread, which belongs to the team of its agent or of its workflow run.
    - Original names require exactly one server and nothing else.
    """

    def __init__(
        self,
        *,
        sessions: GatewaySessionStore,
        agents: AgentStore,
        runs: RunReader,
        tool_nodes: ToolNodes,
        address: PublicAddress,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._address = address
        self._sessions = sessions
        self._agents = agents
        self._runs = runs
        self._tool_nodes = tool_nodes
        self._clock = clock
        self._ids = ids

    async def execute(self, command: OpenGatewaySessionCommand) -> OpenedGatewaySession:
        """Raises FORBIDDEN, INVALID `gateway_session_invalid`, `node_ids_invalid`, NOT_FOUND,
        CONFLICT `agent_disabled`, `run_ended`, `workflow_run_ended`.
        """
        command.principal.require(Permission.GATEWAY_OPEN)
        command.principal.require_self()
        _check(command)
        run = None if command.run_id is None else await self._unfinished_run(command.principal, command.run_id)
        chosen = None
        if command.workflow_run_id is not None:
            chosen = await self._tool_nodes.chosen(command.principal, command.workflow_run_id, command.node_ids or ())
        agent = await self._agent(command, run, chosen)
        if command.names is ToolNames.ORIGINAL and not _is_one_server(agent, run, chosen):
            raise _invalid("names", "`original` needs exactly one MCP server, and nothing else")
        now = self._clock.now()
        token = SESSION_TOKEN_PREFIX + self._ids.new_token().removeprefix(TOKEN_PREFIX)
        session = GatewaySession(
            id=GatewaySessionId(self._ids.new("gws")),
            organization_id=command.principal.organization_id,
            agent_id=agent.id,
            thread_id=ThreadId(self._ids.new("thr")) if run is None else run.thread_id,
            run_id=None if run is None else run.id,
            wired=None if chosen is None else chosen.nodes,
            names=command.names,
            token_hash=hash_token(token),
            created_by=command.principal.key_id,
            created_at=now,
            expires_at=now + timedelta(seconds=command.ttl_s),
        )
        details: JsonObject = {"agent_id": agent.id, "names": session.names.value}
        if session.run_id is not None:
            details["run_id"] = session.run_id
        if session.wired is not None:
            details |= session.wired.to_json()
        audit = audit_entry(
            command.principal,
            AuditAction.GATEWAY_SESSION_CREATED,
            session.id,
            ids=self._ids,
            at=now,
            details=details,
        )
        team = agent.team if chosen is None else chosen.team
        await self._sessions.add(session, audit, thread=own_thread(session, team) if run is None else None)
        base = self._address.url
        url = None if base is None else f"{base}{GATEWAY_PATH}"
        return OpenedGatewaySession(session=session, token=token, url=url)

    async def _unfinished_run(self, principal: Principal, run_id: RunId) -> Run:
        run = principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        if run.status.is_terminal:
            raise conflict("run_ended", f"The run {run_id} has ended: its tools cannot be opened.")
        return run

    async def _agent(self, command: OpenGatewaySessionCommand, run: Run | None, chosen: ChosenNodes | None) -> Agent:
        id_or_name = command.agent or ""
        if run is not None:
            id_or_name = run.agent_id
        elif chosen is not None:
            id_or_name = chosen.agent
        agent = await existing_agent(self._agents, command.principal, id_or_name)
        if chosen is not None and not may_use(chosen.team, agent.team):
            raise not_found("agent", id_or_name)
        if not agent.config.enabled:
            raise conflict("agent_disabled", f"The agent {agent.config.name!r} is disabled.", agent_id=agent.id)
        return agent


def own_thread(session: GatewaySession, team: str | None) -> Thread:
    """The thread of a session without a run: it holds files of its calls, and the quarantine.
    `team` is that of its agent or of its workflow run."""
    return Thread(
        id=session.thread_id,
        organization_id=session.organization_id,
        metadata={"gateway_session_id": session.id},
        created_at=session.created_at,
        team=team,
    )


def _is_one_server(agent: Agent, run: Run | None, chosen: ChosenNodes | None) -> bool:
    if chosen is not None:
        return chosen.is_one_server
    return (run is None or run.wired is None) and len(agent.config.mcp_servers) == 1 and not agent.config.tools


def _check(command: OpenGatewaySessionCommand) -> None:
    whose = (command.agent, command.run_id, command.workflow_run_id)
    if sum(one is not None for one in whose) != 1:
        raise _invalid("agent_id", "exactly one of `agent_id`, `run_id` and `workflow_run_id` must be given")
    if (command.workflow_run_id is None) != (command.node_ids is None):
        raise _invalid("node_ids", "says which tools of the `workflow_run_id` beside it are opened: `[]` for none")
    if not 1 <= command.ttl_s <= MAX_TTL_S:
        raise _invalid("ttl_s", f"must lie between 1 and {MAX_TTL_S} seconds (30 days)")


def _invalid(path: str, message: str) -> Exception:
    violation = Violation(path=path, message=message)
    return invalid("gateway_session_invalid", "The gateway session is not valid.", violation)
