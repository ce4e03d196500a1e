"""The inbox: the list of what waits, one item of it, its decision, and what was decided."""

from collections.abc import Mapping

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from application.agents.name_agents import NameAgents
from application.approvals.decide_approval import DecideApproval, DecideApprovalCommand
from application.approvals.queries import GetApproval, WhyNotApprovable, WhyNotEditable
from domain.approvals.approval import Approval
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ApprovalId
from domain.threads.message import ToolUse
from interfaces.console.argument_forms import ArgumentForms
from interfaces.console.faults import FormCheck
from interfaces.console.inbox import Inbox, InboxItem, chosen
from interfaces.console.inbox_answers import settled
from interfaces.console.inbox_choices import alike, choosable, may_answer
from interfaces.console.inbox_history import AskedHistory, InboxHistory
from interfaces.console.pages import Pages
from interfaces.console.questions import Field, fields_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.inbox_bulk import is_approved
from interfaces.console.routes.sign_in import Form


class InboxPages:
    """Data of the page."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        name_agents: NameAgents,
        argument_forms: ArgumentForms,
        why_not_approvable: WhyNotApprovable,
        why_not_editable: WhyNotEditable,
    ) -> None:
        self._inbox = inbox
        self._why_not = why_not_approvable
        self._why_fixed = why_not_editable
        self._name_agents = name_agents
        self._argument_forms = argument_forms

    async def listed(self, principal: Principal) -> dict[str, object]:
        return await self._list(principal, await self._inbox.of(principal), None)

    async def of(self, principal: Principal, key: str) -> dict[str, object]:
        """The list, and the item with the key, or the first one without a key."""
        items = await self._inbox.of(principal)
        item = chosen(items, key) or await self._inbox.older_approval(principal, key)
        is_gone = {"is_gone": bool(key) and item is None}
        return await self._list(principal, items, item) | await self._detail(principal, item) | is_gone

    async def _list(
        self, principal: Principal, items: tuple[InboxItem, ...], shown: InboxItem | None
    ) -> dict[str, object]:
        agents = (each.agent_id for each in (*items, shown) if each is not None and each.agent_id is not None)
        questions = alike(principal, items)
        return {
            "items": items,
            "questions": questions,
            "choosable": choosable(principal, items, await self._refusals(principal, items), questions),
            "agent_names": await self._name_agents.execute(principal, agents),
        }

    async def _refusals(self, principal: Principal, items: tuple[InboxItem, ...]) -> dict[ApprovalId, ServiceError]:
        """Why the caller may not approve approvals among the items."""
        approvals = [item.subject for item in items if isinstance(item.subject, Approval)]
        return await self._why_not.execute(principal, approvals)

    async def detail(self, principal: Principal, key: str) -> dict[str, object]:
        """The item with that key only; None if it does not wait any more."""
        items = await self._inbox.of(principal)
        found = next((item for item in items if item.key == key), None)
        found = found or await self._inbox.older_approval(principal, key)
        agents = () if found is None or found.agent_id is None else (found.agent_id,)
        names = await self._name_agents.execute(principal, agents)
        return {"agent_names": names} | await self._detail(principal, found)

    async def _detail(self, principal: Principal, item: InboxItem | None) -> dict[str, object]:
        context: dict[str, object] = {
            "item": item,
            "is_gone": False,
            "may_decide": principal.may(Permission.APPROVALS_DECIDE),
            "may_run": principal.may(Permission.RUNS_START),
            "may_change": principal.may(Permission.SERVERS_MANAGE),
        }
        if item is None:
            return context
        subject = item.subject
        if isinstance(subject, Approval):
            fixed = await self._why_fixed.execute(principal, (subject,))
            context |= {
                "refusal": (await self._refusals(principal, (item,))).get(subject.id),
                "fixed": fixed.get(subject.id),
            }
            forms = await self._argument_forms.of(principal, (subject,))
            context |= {"form": forms.get(subject.id), "sent_before": _sent_before(item, subject)}
        if isinstance(subject, ToolUse):
            schema = None if subject.elicitation is None else subject.elicitation.schema
            context |= {"fields": fields_of(schema or {})}
        if item.workflow_run is not None:
            context |= {"may_answer": may_answer(principal, item)}
        return context


@get("/inbox")
async def show_inbox(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    inbox_pages: NamedDependency[InboxPages],
    item: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "inbox.html", await inbox_pages.of(request.principal, item))


@get("/inbox/decided")
async def show_decided(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    inbox_history: NamedDependency[InboxHistory],
    kind: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Response[str]:
    """What people decided, newest first."""
    asked = AskedHistory(kind=kind, since=since, until=until)
    return pages.show(request, "inbox_decided.html", await inbox_history.page(request.principal, asked, cursor or None))


@get("/parts/inbox")
async def show_inbox_part(
    request: ConsoleRequest, pages: NamedDependency[Pages], inbox_pages: NamedDependency[InboxPages]
) -> Response[str]:
    context = await inbox_pages.listed(request.principal)
    return pages.show(request, "parts/inbox_list.html", context | {"item": None})


@get("/inbox/detail")
async def show_inbox_item(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    inbox_pages: NamedDependency[InboxPages],
    item: FromQuery[str],
) -> Response[str]:
    return pages.show(request, "parts/inbox_item.html", await inbox_pages.detail(request.principal, item))


@post("/inbox/approvals/{approval_id:str}", status_code=200)
async def decide_in_inbox(
    *,
    request: ConsoleRequest,
    approval_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    argument_forms: NamedDependency[ArgumentForms],
    get_approval: NamedDependency[GetApproval],
    decide_approval: NamedDependency[DecideApproval],
) -> Response[str]:
    """Approve, with the arguments in the fields of the tool's form, or deny."""
    principal = request.principal
    approve = is_approved(data.get("decision"))
    approval = await get_approval.execute(principal, ApprovalId(approval_id))
    with FormCheck() as check:
        arguments = await argument_forms.entered(principal, approval, data) if approve else None
        decided = await decide_approval.execute(
            DecideApprovalCommand(
                principal=principal,
                approval_id=approval.id,
                approve=approve,
                arguments=arguments,
                reason=data.get("reason") or None,
            )
        )
        return settled(pages, request, decided.tool, decided.state.value)
    fields = (await argument_forms.paths(principal, approval)) if approve else {}
    check.name_fields({path: f"item-{field.name}" for path, field in fields.items()}, _labels(fields))
    return check.shown(pages, request)


def _labels(fields: Mapping[str, Field]) -> dict[str, str]:
    """What people read at each field of the form."""
    return {"arguments": "Arguments"} | {f"item-{field.name}": field.title for field in fields.values()}


def _sent_before(item: InboxItem, approval: Approval) -> bool:
    """Whether the call may have been sent already, before its worker was lost."""
    return item.run is not None and any(
        use.approval is not None and use.approval.approval_id == approval.id and use.approval.outcome_unknown
        for use in item.run.pending
    )
