"""What people decided about what waited in the inbox: who, when, and what they answered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TypeVar, cast
from urllib.parse import urlencode

from application.agents.name_agents import NameAgents
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import GetApproval, ListApprovals
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.system.pages import PageRequest
from application.workflows.run_queries import GetWorkflowRun
from domain.approvals.approval import Approval, ApprovalState
from domain.audit.event import DECISIONS, AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import AgentId, ApprovalId, WorkflowRunId
from domain.json_value import JsonValue
from domain.workflows.run import WorkflowRun
from interfaces.console.asked_runs import begin_of
from interfaces.console.human_answers import question_of
from interfaces.console.inbox import InboxKind
from interfaces.console.pages import in_a_line
from interfaces.console.run_starters import RunStarters
from interfaces.console_paths import PATH

_Id = TypeVar("_Id")
_Found = TypeVar("_Found")
PAGE = 50
_AT_ONCE = 8
_KINDS = {
    InboxKind.APPROVAL: (AuditAction.TOOL_APPROVAL_GIVEN, AuditAction.TOOL_APPROVED, AuditAction.TOOL_DENIED),
    InboxKind.QUESTION: (AuditAction.RUN_QUESTION_ANSWERED,),
    InboxKind.NODE: (AuditAction.WORKFLOW_RUN_RESUMED,),
    InboxKind.TOOL: (AuditAction.MCP_SERVER_TOOL_APPROVED, AuditAction.MCP_SERVER_TOOL_REJECTED),
    InboxKind.THREAD: (AuditAction.THREAD_RELEASED,),
    InboxKind.AUTHORIZATION: (AuditAction.MCP_SERVER_AUTHORIZED,),
}
KINDS = tuple(_KINDS)
_KIND_OF = {action: kind for kind, actions in _KINDS.items() for action in actions}
_DECISIONS = {
    AuditAction.TOOL_APPROVAL_GIVEN: "one of several approvals",
    AuditAction.TOOL_APPROVED: "approved",
    AuditAction.TOOL_DENIED: "denied",
    AuditAction.WORKFLOW_RUN_RESUMED: "answered",
    AuditAction.MCP_SERVER_TOOL_APPROVED: "approved",
    AuditAction.MCP_SERVER_TOOL_REJECTED: "rejected",
    AuditAction.THREAD_RELEASED: "released",
    AuditAction.MCP_SERVER_AUTHORIZED: "authorized",
}
_ANSWERS = {"accept": "answered", "decline": "declined", "cancel": "dismissed"}
_CONTINUED = "continued with an account"
UNDECIDED = {
    ApprovalState.CANCELLED.value: "approval: ended with its run",
    ApprovalState.STALE.value: "approval: asked for again",
}
"""Kinds of approvals that no one decided, and that have no audit entry."""
_ENDS = {ApprovalState.CANCELLED: "ended with its run", ApprovalState.STALE: "asked for again"}
_REFUSALS = ("denied", "rejected", "declined", "dismissed", "expired")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedHistory:
    """The filter above the list. Days are in UTC, both inclusive."""

    kind: str
    since: str
    until: str

    @property
    def wanted(self) -> AuditFilter:
        return AuditFilter(
            decisions=_KINDS[InboxKind(self.kind)] if self.kind in KINDS else DECISIONS,
            since=begin_of(self.since),
            until=begin_of(self.until, days=1),
        )

    @property
    def faults(self) -> list[str]:
        """What would not restrict as meant."""
        wrong = [
            f"“{day}” is not a day as YYYY-MM-DD." for day in (self.since, self.until) if day and not begin_of(day)
        ]
        if self.kind and self.kind not in KINDS and not self.is_undecided:
            wrong.append(f"“{self.kind}” is not a kind of what waits.")
        return wrong

    @property
    def is_undecided(self) -> bool:
        return self.kind in UNDECIDED

    def has(self, at: datetime) -> bool:
        """Whether the days have this moment."""
        since, until = begin_of(self.since), begin_of(self.until, days=1)
        return (since is None or at >= since) and (until is None or at < until)

    @property
    def query(self) -> str:
        return urlencode({name: value for name, value in asdict(self).items() if value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision. `answers` are what was asked and the answer to it, or the arguments of a call;
    `by` is the id of who decided, None if the time for it ended, or the service continued by
    itself."""

    kind: InboxKind
    title: str
    decision: str
    at: datetime
    by: str | None
    link: str | None = None
    about: str = ""
    agent_id: AgentId | None = None
    reason: str | None = None
    answers: tuple[tuple[str, JsonValue], ...] = field(default=())

    @property
    def look(self) -> str:
        """The state whose colour and sign the decision has."""
        if self.decision in _ENDS.values():
            return "skipped"
        return "denied" if self.decision in _REFUSALS else "approved"


class InboxHistory:
    """Rules:
    - Any role may read it: it is read from the audit trail, newest first, as long as the trail has
      it.
    - What was answered is read from the approval and the workflow run, as long as these exist.
    - Approvals that no one decided are listed by themselves, newest request first: the trail does
      not have them.
    """

    def __init__(
        self,
        *,
        list_audit_events: ListAuditEvents,
        get_approval: GetApproval,
        list_approvals: ListApprovals,
        get_workflow_run: GetWorkflowRun,
        name_agents: NameAgents,
        run_starters: RunStarters,
    ) -> None:
        self._events = list_audit_events
        self._approval = get_approval
        self._approvals = list_approvals
        self._workflow_run = get_workflow_run
        self._name_agents = name_agents
        self._starters = run_starters

    async def page(self, principal: Principal, asked: AskedHistory, cursor: str | None) -> dict[str, object]:
        """A page of decisions, with the names of who took them."""
        request = PageRequest(limit=PAGE, cursor=cursor)
        if asked.is_undecided:
            wanted = ApprovalFilter(state=ApprovalState(asked.kind))
            ended = await self._approvals.execute(principal, wanted, request)
            found = [_undecided(each) for each in ended.items if asked.has(each.created_at)]
            return await self._shown(principal, asked, found, ended.next_cursor)
        page = await self._events.execute(principal, asked.wanted, request)
        approvals = await _each(
            {ApprovalId(each) for event in page.items if (each := _text(event, "approval_id"))},
            lambda id: self._approval.execute(principal, id),
        )
        workflow_runs = await _each(
            {WorkflowRunId(event.resource) for event in page.items if _KIND_OF[event.action] is InboxKind.NODE},
            lambda id: self._named(principal, id),
        )
        decided = [_decided(event, approvals, workflow_runs) for event in page.items]
        return await self._shown(principal, asked, decided, page.next_cursor)

    async def _shown(
        self, principal: Principal, asked: AskedHistory, decided: list[Decided], next_cursor: str | None
    ) -> dict[str, object]:
        agents = (each.agent_id for each in decided if each.agent_id is not None)
        return {
            "asked": asked,
            "kinds": KINDS,
            "undecided": UNDECIDED,
            "decided": decided,
            "next_cursor": next_cursor,
            "agent_names": await self._name_agents.execute(principal, agents),
            "names": await self._starters.names(principal, (each.by for each in decided)),
        }

    async def _named(self, principal: Principal, run_id: WorkflowRunId) -> tuple[WorkflowRun, str]:
        """The run, and the name of its workflow."""
        run = await self._workflow_run.execute(principal, run_id)
        return run, (await self._workflow_run.definition(principal, run)).name


def _decided(
    event: AuditEvent,
    approvals: dict[ApprovalId, Approval],
    workflow_runs: dict[WorkflowRunId, tuple[WorkflowRun, str]],
) -> Decided:
    kind = _KIND_OF[event.action]
    run_page = None if event.run_id is None else f"{PATH}/runs/{event.run_id}"
    match kind:
        case InboxKind.APPROVAL:
            return _of_approval(event, approvals.get(ApprovalId(_text(event, "approval_id") or "")), run_page)
        case InboxKind.NODE:
            return _of_nodes(event, workflow_runs.get(WorkflowRunId(event.resource)))
        case InboxKind.QUESTION:
            title, link, about = f"A question of {event.tool}", run_page, ""
        case InboxKind.TOOL:
            slug = _text(event, "slug")
            title, link, about = _text(event, "name") or "", f"{PATH}/servers/{slug}", f"tool of the MCP server {slug}"
        case InboxKind.THREAD:
            title, link, about = "A thread", f"{PATH}/threads/{event.resource}", event.resource
        case _:
            slug = _text(event, "slug") or event.resource
            title, link, about = slug, f"{PATH}/servers/{slug}", "MCP server"
    return Decided(
        kind=kind,
        title=title,
        decision=_ANSWERS.get(_text(event, "answer") or "") or _DECISIONS[event.action],
        at=event.at,
        by=event.actor,
        link=link,
        about=about,
        reason=_text(event, "reason"),
    )


def _of_approval(event: AuditEvent, approval: Approval | None, run_page: str | None) -> Decided:
    is_expired = event.details.get("expired") is True
    answers: tuple[tuple[str, JsonValue], ...] = ()
    if approval is not None:
        answers = (("Arguments", approval.arguments),)
        if approval.edited_arguments is not None:
            answers += (("Approved with these arguments", approval.edited_arguments),)
    return Decided(
        kind=InboxKind.APPROVAL,
        title=event.tool or "",
        decision="expired" if is_expired else _DECISIONS[event.action],
        at=event.at,
        by=None if is_expired else event.actor,
        link=run_page,
        about="" if run_page else "a client of the gateway",
        agent_id=None if approval is None else approval.agent_id,
        reason=_text(event, "reason"),
        answers=answers,
    )


def _undecided(approval: Approval) -> Decided:
    return Decided(
        kind=InboxKind.APPROVAL,
        title=approval.tool,
        decision=_ENDS[approval.state],
        at=approval.decided_at or approval.created_at,
        by=None,
        link=None if approval.run_id is None else f"{PATH}/runs/{approval.run_id}",
        agent_id=approval.agent_id,
        answers=(("Arguments", approval.arguments),),
    )


def _of_nodes(event: AuditEvent, found: tuple[WorkflowRun, str] | None) -> Decided:
    """The nodes that were answered at once, or continued by the service when an account was
    connected."""
    named = event.details.get("nodes")
    node_ids = [str(each) for each in named] if isinstance(named, list) else []
    answers: list[tuple[str, JsonValue]] = []
    for node_id in node_ids if found is not None else ():
        node = cast("tuple[WorkflowRun, str]", found)[0].nodes.get(node_id)
        question = None if node is None else question_of(node)
        if node is not None and question is not None:
            answers.append((in_a_line(question.prompt) or node_id, node.output))
    # Only what the service continues with an account names the server of the account.
    is_by_itself = event.server_id is not None
    where = "" if found is None else f" of the workflow {found[1]}"
    return Decided(
        kind=InboxKind.NODE,
        title=answers[0][0] if answers else ", ".join(node_ids),
        decision=_CONTINUED if is_by_itself else _DECISIONS[event.action],
        at=event.at,
        by=None if is_by_itself else event.actor,
        link=f"{PATH}/workflows/runs/{event.resource}",
        about=f"{', '.join(node_ids)}{where}",
        answers=tuple(answers),
    )


def _text(event: AuditEvent, name: str) -> str | None:
    value = event.details.get(name)
    return value if isinstance(value, str) else None


async def _each(ids: Iterable[_Id], read: Callable[[_Id], Awaitable[_Found]]) -> dict[_Id, _Found]:
    """What there is of these, some read at once."""
    places, found = asyncio.Semaphore(_AT_ONCE), dict[_Id, _Found]()

    async def one(id: _Id) -> None:
        async with places:
            try:
                found[id] = await read(id)
            except ServiceError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise

    await asyncio.gather(*map(one, ids))
    return found
