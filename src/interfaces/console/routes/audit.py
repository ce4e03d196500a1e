"""The audit trail: reading, searching, exporting, verifying."""

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
from application.audit.verify_audit_chain import VerifyAuditChain
from application.system.pages import PageRequest
from domain.audit.chain_check import ChainProblem
from domain.audit.event import AuditAction
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.http.audit.routes import exported

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The filter above the table; all conditions must hold."""

    action: str
    actor: str
    resource: str
    run_id: str
    tool: str

    @property
    def wanted(self) -> AuditFilter:
        """The filter, where empty fields do not restrict."""
        return AuditFilter(**{name: value or None for name, value in asdict(self).items()})

    @property
    def query(self) -> str:
        """The filter as a query string."""
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
    """Matching entries, newest first."""
    page = await list_audit_events.execute(
        principal=request.principal, wanted=asked.wanted, page=PageRequest(limit=PAGE, cursor=cursor)
    )
    context = {"events": page.items, "next_cursor": page.next_cursor, "asked": asked, "actions": list(AuditAction)}
    return pages.show(request, "audit.html", context)


@get("/audit/export", dependencies=_FILTERED)
async def export_audit(
    request: ConsoleRequest, export_audit_events: NamedDependency[ExportAuditEvents], asked: NamedDependency[Asked]
) -> Stream:
    """Matching entries as NDJSON with their seals, in the order of the seals."""
    parts = export_audit_events.execute(ExportAuditEventsCommand(principal=request.principal, wanted=asked.wanted))
    return exported(parts)


@post("/audit/verify", status_code=200)
async def verify_audit(
    request: ConsoleRequest, pages: NamedDependency[Pages], verify_audit_chain: NamedDependency[VerifyAuditChain]
) -> Response[str]:
    report = await verify_audit_chain.execute(request.principal)
    return pages.show(request, "parts/verified.html", {"report": report, "problems": _PROBLEMS})


_PROBLEMS = {
    ChainProblem.EDITED: "This entry or its seal was changed after sealing.",
    ChainProblem.DELETED: "The entry of this number, or its seal, was removed.",
    ChainProblem.REORDERED: "The entry at this number was sealed at another number.",
    ChainProblem.INSERTED: "After the end of the chain there is a seal that this service did not write.",
    ChainProblem.HEAD_EDITED: "The signed head, which records the end of the chain, was changed.",
    ChainProblem.HEAD_DELETED: "The signed head, which records the end of the chain, was removed.",
    ChainProblem.UNSEALED: "This entry has had no seal for over ten seconds: it was not written by the service, or sealing has stopped.",
}
