"""Route of the audit trail."""

from datetime import UTC, datetime
from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery, QueryParameter

from application.audit.list_audit_events import ListAuditEvents, ListAuditEventsCommand
from application.audit.ports import AuditFilter
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.audit.views import AuditEventPage, audit_event_view
from interfaces.http.paging import PageCursor, PageLimit, page_view
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAGS = ["audit"]


@get("/audit-events", tags=TAGS, summary="List audit events", responses=documented())
async def list_audit_events(
    *,
    request: ApiRequest,
    list_audit_events: NamedDependency[ListAuditEvents],
    action: Annotated[str | None, QueryParameter(description="`run.started`, or a group: `tool.*`.")] = None,
    actor: FromQuery[str | None] = None,
    resource: FromQuery[str | None] = None,
    run_id: FromQuery[str | None] = None,
    tool: FromQuery[str | None] = None,
    since: Annotated[datetime | None, QueryParameter(description="RFC 3339; from then on.")] = None,
    until: Annotated[datetime | None, QueryParameter(description="RFC 3339; before then.")] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> AuditEventPage:
    """Newest first. All conditions must hold."""
    wanted = AuditFilter(
        action=action,
        actor=actor,
        resource=resource,
        run_id=run_id,
        tool=tool,
        since=_in_utc(since),
        until=_in_utc(until),
    )
    command = ListAuditEventsCommand(
        principal=request.principal, wanted=wanted, page=PageRequest(limit=limit, cursor=cursor)
    )
    return page_view(await list_audit_events.execute(command), audit_event_view)


def _in_utc(moment: datetime | None) -> datetime | None:
    """A time without a zone is taken for UTC."""
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)


def audit_routes() -> list[HTTPRouteHandler]:
    """The route of the audit trail."""
    return [list_audit_events]
