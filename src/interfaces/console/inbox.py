"""The inbox: everything that waits for a person, in one list, what is due first at its top."""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from application.approvals.ports import ApprovalFilter
from application.approvals.queries import GetApproval, ListApprovals
from application.mcp.queries import CountQuarantinedTools, GetMcpServerStatus, GetMcpServerTools, ListMcpServers
from application.mcp.server_status import needs_authorization
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, ListRuns
from application.system.lru import LruCache
from application.system.pages import PageRequest
from application.system.ports import Clock
from application.threads.queries import ListQuarantinedThreads
from application.workflows.ports import WorkflowRunFilter
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns
from domain.approvals.approval import Approval, ApprovalState
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import AgentId, ApprovalId, OrganizationId, RunId
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned_tools
from domain.mcp.server import McpServer
from domain.runs.run import Run, RunStatus
from domain.teams import Teams
from domain.threads.message import ToolUse
from domain.threads.thread import Thread
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from interfaces.console.human_answers import Question, question_of
from interfaces.console.pages import asked, in_a_line

_Found = TypeVar("_Found")
MOST = 100
"""Of each kind; more is not collected."""
_COUNTED_FOR = timedelta(seconds=10)
_COUNTS = 1_000
_Reader = tuple[OrganizationId, frozenset[Permission], Teams]
"""Who of an organization sees the same items."""


class InboxKind(StrEnum):
    """What waits; the value is the beginning of an item's key."""

    APPROVAL = "approval"
    QUESTION = "question"
    CALL = "call"
    NODE = "node"
    TOOL = "tool"
    THREAD = "thread"
    AUTHORIZATION = "authorization"

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def at_its_end(self) -> str:
        """What happens if no one decides in time."""
        return "then its node fails" if self is InboxKind.NODE else "then the call is denied"

    @property
    def whom(self) -> str:
        """Who may end it, by the role."""
        return _WHOM[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """Something that waits. `subject` is the thing itself, `run` the run that waits for it, `about`
    its context in a line. `since` and `due` are None if not known, and without an end."""

    key: str
    kind: InboxKind
    title: str
    about: str
    subject: Approval | ToolUse | Question | PinnedTool | Thread | McpServer
    run: Run | None = None
    workflow_run: WorkflowRun | None = None
    server: McpServer | None = None
    agent_id: AgentId | None = None
    since: datetime | None = None
    due: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many items there are, and since when the newest one waits."""

    count: int
    newest: datetime | None


class Inbox:
    """Rules:
    - Any role may read it; acting on an item requires the role that the action requires elsewhere.
    - What ends by itself comes first, the nearest end at the top; then the oldest.
    - A recent count is up to ten seconds old; all pages of an organization share it.
    """

    def __init__(
        self,
        *,
        list_approvals: ListApprovals,
        get_approval: GetApproval,
        list_runs: ListRuns,
        get_run: GetRun,
        list_workflow_runs: ListWorkflowRuns,
        get_workflow_run: GetWorkflowRun,
        list_mcp_servers: ListMcpServers,
        get_mcp_server_status: GetMcpServerStatus,
        get_mcp_server_tools: GetMcpServerTools,
        count_quarantined_tools: CountQuarantinedTools,
        list_quarantined_threads: ListQuarantinedThreads,
        clock: Clock,
    ) -> None:
        self._approvals = list_approvals
        self._approval = get_approval
        self._runs = list_runs
        self._run = get_run
        self._workflow_runs = list_workflow_runs
        self._workflow_run = get_workflow_run
        self._servers = list_mcp_servers
        self._status = get_mcp_server_status
        self._tools = get_mcp_server_tools
        self._waiting_tools = count_quarantined_tools
        self._quarantined = list_quarantined_threads
        self._clock = clock
        self._counts: LruCache[_Reader, tuple[datetime, Waiting]] = LruCache(_COUNTS)

    async def of(self, principal: Principal) -> tuple[InboxItem, ...]:
        """All items."""
        parts = await asyncio.gather(
            self._waiting_approvals(principal),
            self._waiting_calls(principal),
            self._waiting_nodes(principal),
            self._of_servers(principal),
            self._quarantined_threads(principal),
        )
        items = tuple(sorted((item for part in parts for item in part), key=_urgency))
        self._counts.put(_reader(principal), (self._clock.now(), _waiting(items)))
        return items

    async def older_approval(self, principal: Principal, key: str) -> InboxItem | None:
        """The pending approval with this key, which may be too old for the list; None for another
        key."""
        kind, _, approval_id = key.partition(":")
        if kind != InboxKind.APPROVAL:
            return None
        approval = await _or_none(self._approval.execute(principal, ApprovalId(approval_id)))
        if approval is None or approval.state is not ApprovalState.PENDING:
            return None
        return _approval_item(approval, await self._found_run(principal, approval.run_id) if approval.run_id else None)

    async def waiting(self, principal: Principal, *, recent: bool) -> Waiting:
        """How many items there are; a `recent` count is for what many open pages ask again and
        again."""
        counted = self._counts.get(_reader(principal)) if recent else None
        if counted is not None and self._clock.now() - counted[0] < _COUNTED_FOR:
            return counted[1]
        return _waiting(await self.of(principal))

    async def _waiting_approvals(self, principal: Principal) -> list[InboxItem]:
        page = await self._approvals.execute(
            principal=principal,
            wanted=ApprovalFilter(state=ApprovalState.PENDING, run_id=None),
            page=PageRequest(limit=MOST),
        )
        wanted = tuple(dict.fromkeys(each.run_id for each in page.items if each.run_id is not None))
        found = await asyncio.gather(*(self._found_run(principal, run_id) for run_id in wanted))
        runs = {run.id: run for run in found if run is not None}
        return [_approval_item(each, runs.get(each.run_id) if each.run_id else None) for each in page.items]

    async def _found_run(self, principal: Principal, run_id: RunId) -> Run | None:
        return await _or_none(self._run.execute(principal, run_id))

    async def _waiting_calls(self, principal: Principal) -> list[InboxItem]:
        """Questions of MCP servers, and calls of client tools."""
        page = await self._runs.execute(principal, RunFilter(status=RunStatus.REQUIRES_ACTION), PageRequest(limit=MOST))
        return [_call_item(run, use) for run in page.items for use in run.pending if use.approval is None]

    async def _waiting_nodes(self, principal: Principal) -> list[InboxItem]:
        wanted = WorkflowRunFilter(status=WorkflowRunStatus.REQUIRES_ACTION)
        page = await self._workflow_runs.execute(principal, wanted, PageRequest(limit=MOST))
        # A list has runs without their nodes.
        found = await asyncio.gather(*(_or_none(self._workflow_run.execute(principal, run.id)) for run in page.items))
        names = {run.id: (await self._workflow_run.definition(principal, run)).name for run in found if run is not None}
        return [
            InboxItem(
                key=f"{InboxKind.NODE}:{run.id}:{node.node_id}",
                kind=InboxKind.NODE,
                title=in_a_line(question.prompt) or node.node_id,
                about=f"node {node.node_id} of the workflow {names[run.id]}",
                subject=question,
                workflow_run=run,
                since=node.started_at,
                due=node.due_at,
            )
            for run in found
            if run is not None
            for node in run.waiting_nodes
            if (question := question_of(node)) is not None
        ]

    async def _of_servers(self, principal: Principal) -> list[InboxItem]:
        """Tools in quarantine, and servers that a person must authorize."""
        page = await self._servers.execute(principal=principal, page=PageRequest(limit=MOST))
        counts = await self._waiting_tools.execute(principal)
        enabled = [server for server in page.items if server.config.enabled]
        found = await asyncio.gather(
            # Catalogs are large: only those are read in which a tool waits.
            *(self._quarantined_tools(principal, server) for server in enabled if server.id in counts),
            *(self._authorizations(principal, server) for server in enabled),
        )
        return [item for part in found for item in part]

    async def _quarantined_tools(self, principal: Principal, server: McpServer) -> list[InboxItem]:
        slug, listed = server.config.slug, await _or_none(self._tools.execute(principal, server.id))
        catalog = None if listed is None else listed.catalog
        return [
            InboxItem(
                key=f"{InboxKind.TOOL}:{slug}:{tool.definition.name}",
                kind=InboxKind.TOOL,
                title=tool.definition.name,
                about=f"tool of the MCP server {slug}",
                subject=tool,
                server=server,
                since=None if catalog is None else catalog.taken_at,
            )
            for tool in (pinned_tools(catalog) if catalog is not None and catalog.quarantined else ())
            if tool.state is DefinitionState.QUARANTINED
        ]

    async def _authorizations(self, principal: Principal, server: McpServer) -> list[InboxItem]:
        if not isinstance(server.config.auth, AuthorizationCodeAuth):
            return []
        status = await _or_none(self._status.execute(principal, server.id))
        if status is None or not needs_authorization(server, status):
            return []
        slug = server.config.slug
        return [
            InboxItem(
                key=f"{InboxKind.AUTHORIZATION}:{slug}",
                kind=InboxKind.AUTHORIZATION,
                title=slug,
                about="MCP server without a grant",
                subject=server,
                server=server,
                since=status.since,
            )
        ]

    async def _quarantined_threads(self, principal: Principal) -> list[InboxItem]:
        threads = await self._quarantined.execute(principal, MOST)
        waiting = [(thread, thread.quarantine) for thread in threads if thread.quarantine is not None]
        runs = await asyncio.gather(*(self._found_run(principal, quarantine.run_id) for _, quarantine in waiting))
        return [
            InboxItem(
                key=f"{InboxKind.THREAD}:{thread.id}",
                kind=InboxKind.THREAD,
                title="a session of the gateway" if run is None else asked(run),
                about=f"canary token {quarantine.canary_id}",
                subject=thread,
                run=run,
                agent_id=None if run is None else run.agent_id,
                since=quarantine.at,
            )
            for (thread, quarantine), run in zip(waiting, runs, strict=True)
        ]


def chosen(items: Iterable[InboxItem], key: str) -> InboxItem | None:
    """The item with the key, or the first one without a key. None for one that does not wait any
    more: a link to it must not lead to a decision about another."""
    return next((item for item in items if not key or item.key == key), None)


def _reader(principal: Principal) -> _Reader:
    return principal.organization_id, principal.permissions, principal.visible_teams


def _waiting(items: tuple[InboxItem, ...]) -> Waiting:
    return Waiting(count=len(items), newest=max((item.since for item in items if item.since is not None), default=None))


def _approval_item(approval: Approval, run: Run | None) -> InboxItem:
    return InboxItem(
        key=f"{InboxKind.APPROVAL}:{approval.id}",
        kind=InboxKind.APPROVAL,
        title=approval.tool,
        about="a client of the gateway" if run is None else asked(run),
        subject=approval,
        run=run,
        agent_id=approval.agent_id,
        since=approval.created_at,
        due=approval.expires_at,
    )


def _call_item(run: Run, use: ToolUse) -> InboxItem:
    question = use.elicitation
    kind = InboxKind.CALL if question is None else InboxKind.QUESTION
    part = "" if question is None else f":{question.request_id}"
    return InboxItem(
        key=f"{kind}:{run.id}:{use.id}{part}",
        kind=kind,
        title=use.name if question is None else in_a_line(question.message),
        about=asked(run),
        subject=use,
        run=run,
        agent_id=run.agent_id,
        since=run.started_at,
    )


def _urgency(item: InboxItem) -> tuple[bool, float, str]:
    """Items with an end first, by it; the others by their age."""
    moment = item.due or item.since
    return item.due is None, 0.0 if moment is None else moment.timestamp(), item.key


async def _or_none(asked: Awaitable[_Found]) -> _Found | None:
    """None for what was deleted meanwhile."""
    try:
        return await asked
    except ServiceError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None


_WORDS = {
    InboxKind.APPROVAL: "approval",
    InboxKind.QUESTION: "question",
    InboxKind.CALL: "to do",
    InboxKind.NODE: "workflow question",
    InboxKind.TOOL: "tool in quarantine",
    InboxKind.THREAD: "thread in quarantine",
    InboxKind.AUTHORIZATION: "authorization",
}
_WHOM = {
    InboxKind.APPROVAL: "operators",
    InboxKind.QUESTION: "runners",
    InboxKind.CALL: "runners",
    InboxKind.NODE: "operators",
    InboxKind.TOOL: "admins",
    InboxKind.THREAD: "operators",
    InboxKind.AUTHORIZATION: "admins",
}
