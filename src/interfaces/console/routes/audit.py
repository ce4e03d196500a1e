"""The audit trail: reading, searching, exporting, verifying."""

from collections.abc import Iterable, Iterator
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
from application.mcp.queries import ListMcpServers
from application.system.pages import PageRequest
from domain.audit.chain_check import ChainProblem
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import invalid
from interfaces.console.asked_runs import begin_of
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.resource_names import ResourceNames
from interfaces.console.whole_lists import all_of
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
    server_id: str
    since: str
    until: str

    @property
    def wanted(self) -> AuditFilter:
        """The filter, where empty fields do not restrict; days are in UTC, both inclusive."""
        texts = {name: value or None for name, value in asdict(self).items() if name not in ("since", "until")}
        return AuditFilter(**texts, since=begin_of(self.since), until=begin_of(self.until, days=1))

    @property
    def faults(self) -> list[str]:
        """Days that would not restrict as meant."""
        return [f"“{day}” is not a day as YYYY-MM-DD." for day in (self.since, self.until) if day and not begin_of(day)]

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
    server_id: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
) -> Asked:
    return Asked(
        action=action,
        actor=actor,
        resource=resource,
        run_id=run_id,
        tool=tool,
        server_id=server_id,
        since=since,
        until=until,
    )


_FILTERED = {"asked": Provide(_asked, sync_to_thread=False)}


@get("/audit", dependencies=_FILTERED)
async def show_audit(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_audit_events: NamedDependency[ListAuditEvents],
    list_mcp_servers: NamedDependency[ListMcpServers],
    resource_names: NamedDependency[ResourceNames],
    asked: NamedDependency[Asked],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Matching entries, newest first. Servers are chosen by name on the first page only: reading
    all is left out of others."""
    page = await list_audit_events.execute(
        principal=request.principal, wanted=asked.wanted, page=PageRequest(limit=PAGE, cursor=cursor)
    )
    principal = request.principal
    servers = () if cursor else await all_of(lambda wanted: list_mcp_servers.execute(principal=principal, page=wanted))
    names = await resource_names.of(principal, _named(page.items))
    context = {
        "events": page.items,
        "next_cursor": page.next_cursor,
        "asked": asked,
        "actions": list(AuditAction),
        "is_first": not cursor,
        "servers": sorted(((server.id, server.config.slug) for server in servers), key=lambda each: each[1]),
        "names": names,
        "actors": {event.actor: names[event.actor].name for event in page.items},
    }
    return pages.show(request, "audit.html", context)


def _named(events: Iterable[AuditEvent]) -> Iterator[str | None]:
    """Who acted, what was acted on, and the run and the server of it."""
    for event in events:
        yield from (event.actor, event.resource, event.run_id, event.server_id)


@get("/audit/export", dependencies=_FILTERED)
async def export_audit(
    request: ConsoleRequest, export_audit_events: NamedDependency[ExportAuditEvents], asked: NamedDependency[Asked]
) -> Stream:
    """Matching entries as NDJSON with their seals, in the order of the seals. Raises INVALID for an
    invalid day, which would export too much."""
    if asked.faults:
        raise invalid("audit_days_invalid", " ".join(asked.faults))
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
