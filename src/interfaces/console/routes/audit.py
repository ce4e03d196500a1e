"""The audit trail: reading, searching, exporting, and whether anybody has changed it."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, QueryParameter

from application.audit.list_audit_events import ListAuditEvents, ListAuditEventsCommand
from application.audit.ports import AuditFilter
from application.audit.verify_audit_chain import VerifyAuditChain, VerifyAuditChainCommand
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

PAGE = 100


@get("/audit")
async def show_audit(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_audit_events: NamedDependency[ListAuditEvents],
    action: FromQuery[str] = "",
    actor: FromQuery[str] = "",
    resource: FromQuery[str] = "",
    run_id: FromQuery[str] = "",
    tool: FromQuery[str] = "",
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Newest first; what is filled in must all hold."""
    asked = {"action": action, "actor": actor, "resource": resource, "run_id": run_id, "tool": tool}
    wanted = AuditFilter(
        action=action or None,
        actor=actor or None,
        resource=resource or None,
        run_id=run_id or None,
        tool=tool or None,
    )
    page = await list_audit_events.execute(
        ListAuditEventsCommand(principal=request.principal, wanted=wanted, page=PageRequest(limit=PAGE, cursor=cursor))
    )
    context = {"events": page.items, "next_cursor": page.next_cursor, "asked": asked, "actions": list(AuditAction)}
    return pages.show(request, "audit.html", context)


@post("/audit/verify", status_code=200)
async def verify_audit(
    request: ConsoleRequest, pages: NamedDependency[Pages], verify_audit_chain: NamedDependency[VerifyAuditChain]
) -> Response[str]:
    """Checks every seal."""
    report = await verify_audit_chain.execute(VerifyAuditChainCommand(principal=request.principal))
    return pages.show(request, "parts/verified.html", {"report": report})
