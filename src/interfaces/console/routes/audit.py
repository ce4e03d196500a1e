"""The audit trail: reading, searching, exporting, and whether anybody has changed it."""

from dataclasses import asdict, dataclass
from typing import Annotated
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from application.audit.export_audit_events import ExportAuditEvents, ExportAuditEventsCommand
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.audit.verify_audit_chain import VerifyAuditChain, VerifyAuditChainCommand
from application.system.pages import PageRequest
from domain.audit.chain_check import ChainProblem
from domain.audit.event import AuditAction
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.http.audit.routes import exported

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is filled in above the table; all of it must hold."""

    action: str
    actor: str
    resource: str
    run_id: str
    tool: str

    @property
    def wanted(self) -> AuditFilter:
        """The same, where what is empty does not restrict."""
        return AuditFilter(**{name: value or None for name, value in asdict(self).items()})

    @property
    def query(self) -> str:
        """The same in an address."""
        return urlencode({name: value for name, value in asdict(self).items() if value})


def _asked(
    *,
    action: FromQuery[str] = "",
    actor: FromQuery[str] = "",
    resource: FromQuery[str] = "",
    run_id: FromQuery[str] = "",
    tool: FromQuery[str] = "",
) -> Asked:
    return Asked(action=action, actor=actor, resource=resource, run_id=run_id, tool=tool)


_FILTERED = {"asked": Provide(_asked, sync_to_thread=False)}


@get("/audit", dependencies=_FILTERED)
async def show_audit(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_audit_events: NamedDependency[ListAuditEvents],
    asked: NamedDependency[Asked],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Newest first; what is filled in must all hold."""
    page = await list_audit_events.execute(
        principal=request.principal, wanted=asked.wanted, page=PageRequest(limit=PAGE, cursor=cursor)
    )
    context = {"events": page.items, "next_cursor": page.next_cursor, "asked": asked, "actions": list(AuditAction)}
    return pages.show(request, "audit.html", context)


@get("/audit/export", dependencies=_FILTERED)
async def export_audit(
    request: ConsoleRequest, export_audit_events: NamedDependency[ExportAuditEvents], asked: NamedDependency[Asked]
) -> Stream:
    """The same entries as a file of NDJSON, with their seals, in the order of these."""
    parts = export_audit_events.execute(ExportAuditEventsCommand(principal=request.principal, wanted=asked.wanted))
    return exported(parts)


@post("/audit/verify", status_code=200)
async def verify_audit(
    request: ConsoleRequest, pages: NamedDependency[Pages], verify_audit_chain: NamedDependency[VerifyAuditChain]
) -> Response[str]:
    """Checks every seal."""
    report = await verify_audit_chain.execute(VerifyAuditChainCommand(principal=request.principal))
    return pages.show(request, "parts/verified.html", {"report": report, "problems": _PROBLEMS})


_PROBLEMS = {
    ChainProblem.EDITED: "This entry, or its seal, was changed after it was sealed: it is not what was written.",
    ChainProblem.DELETED: "The entry of this number, or its seal, was removed.",
    ChainProblem.REORDERED: "At this number stands an entry that was sealed at another one.",
    ChainProblem.INSERTED: "Behind the end of the chain stands a seal that this service did not write.",
    ChainProblem.HEAD_EDITED: "The signed head, which says how far the chain goes, was changed.",
    ChainProblem.HEAD_DELETED: "The signed head, which says how far the chain goes, was removed.",
    ChainProblem.UNSEALED: "This entry has waited for its seal for over ten seconds: it was written past the service, or the sealing stands still.",
}
