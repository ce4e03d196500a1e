"""Routes of the audit trail."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency, Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter
from litestar.response import Stream

from application.audit.export_audit_events import ExportAuditEvents, ExportAuditEventsCommand, ExportedEntry
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.audit.verify_audit_chain import VerifyAuditChain
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.audit.views import (
    AuditEventPage,
    ChainReportView,
    audit_event_view,
    chain_report_view,
    exported_lines,
)
from interfaces.http.moments import in_utc
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Audit", description="The audit trail: read, export, verify.")
NDJSON = "application/x-ndjson"


def audit_filter(
    *,
    action: Annotated[str | None, QueryParameter(description="`run.started`, or a group: `tool.*`.")] = None,
    actor: Annotated[
        str | None,
        QueryParameter(description="The id of an API key, `schedule:` and the id of a schedule, or `system`."),
    ] = None,
    resource: Annotated[str | None, QueryParameter(description="Id of the affected object.")] = None,
    run_id: Annotated[str | None, QueryParameter(description="Id of a run.")] = None,
    tool: Annotated[str | None, QueryParameter(description="The name that models see.")] = None,
    server_id: Annotated[str | None, QueryParameter(description="Id of an MCP server.")] = None,
    since: Annotated[datetime | None, QueryParameter(description="RFC 3339; inclusive.")] = None,
    until: Annotated[datetime | None, QueryParameter(description="RFC 3339; exclusive.")] = None,
) -> AuditFilter:
    return AuditFilter(
        action=action,
        actor=actor,
        resource=resource,
        run_id=run_id,
        tool=tool,
        server_id=server_id,
        since=in_utc(since),
        until=in_utc(until),
    )


_FILTERED = {"wanted": Provide(audit_filter, sync_to_thread=False)}


@get("/audit-events", summary="List audit events", responses=documented(), dependencies=_FILTERED)
async def list_audit_events(
    request: ApiRequest,
    list_audit_events: NamedDependency[ListAuditEvents],
    wanted: NamedDependency[AuditFilter],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> AuditEventPage:
    """Newest first. All conditions must hold."""
    return page_view(
        await list_audit_events.execute(
            principal=request.principal, wanted=wanted, page=PageRequest(limit=limit, cursor=cursor)
        ),
        audit_event_view,
    )


@get(
    "/audit-events/export",
    summary="Export audit events",
    responses={
        200: ResponseSpec(
            data_container=str,
            description="One line of JSON per event: the fields of the list, and `number`, `seal`, `key_id` and "
            "`sealed_at` of its seal, in the order of the seals. Events without a seal come last, with nulls.",
            media_type=NDJSON,
            generate_examples=False,
        ),
        **documented(),
    },
    dependencies=_FILTERED,
)
async def export_audit_events(
    request: ApiRequest,
    export_audit_events: NamedDependency[ExportAuditEvents],
    wanted: NamedDependency[AuditFilter],
) -> Stream:
    """Sealed events by number, as stored. All conditions must hold."""
    return exported(export_audit_events.execute(ExportAuditEventsCommand(principal=request.principal, wanted=wanted)))


def exported(parts: AsyncIterator[tuple[ExportedEntry, ...]]) -> Stream:
    """An export as a streamed NDJSON file."""

    async def lines() -> AsyncIterator[bytes]:
        async for part in parts:
            if part:
                yield exported_lines(part)

    return Stream(lines(), media_type=NDJSON, headers={"Content-Disposition": 'attachment; filename="audit.ndjson"'})


@get("/audit-events/verify", summary="Verify the audit trail", responses=documented())
async def verify_audit_chain(
    request: ApiRequest, verify_audit_chain: NamedDependency[VerifyAuditChain]
) -> ChainReportView:
    """Whether every event is unchanged, in its place, and none is missing; otherwise the first
    broken place."""
    return chain_report_view(await verify_audit_chain.execute(request.principal))
