"""Routes of schedules."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.schedules.create_schedule import CreateSchedule
from application.schedules.delete_schedule import DeleteSchedule, DeleteScheduleCommand
from application.schedules.queries import GetSchedule, ListSchedules
from application.schedules.update_schedule import UpdateSchedule
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import SchedulePath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.schedules.schemas import ScheduleBody, UpdateScheduleBody
from interfaces.http.schedules.views import SchedulePage, ScheduleView, schedule_view

TAG = Tag(name="Schedules", description="Runs that start by cron expressions.")


@post("/schedules", summary="Create a schedule", responses=documented(403, 404, 409, 413))
async def create_schedule(
    request: ApiRequest, data: JSONBody[ScheduleBody], create_schedule: NamedDependency[CreateSchedule]
) -> Response[ScheduleView]:
    """Requires the role admin: its runs act for the organization, independent of the key."""
    schedule = await create_schedule.execute(data.to_command(request.principal))
    headers = {"Location": f"/v1/schedules/{schedule.id}", **etag(schedule.version)}
    return Response(schedule_view(schedule), status_code=201, headers=headers)


@get("/schedules", summary="List schedules", responses=documented())
async def list_schedules(
    *,
    request: ApiRequest,
    list_schedules: NamedDependency[ListSchedules],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> SchedulePage:
    """Newest first."""
    return page_view(
        await list_schedules.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        schedule_view,
    )


@get("/schedules/{schedule:str}", summary="Read a schedule", responses=documented(404))
async def get_schedule(
    request: ApiRequest, schedule: SchedulePath, get_schedule: NamedDependency[GetSchedule]
) -> Response[ScheduleView]:
    """With its next run time and the outcome of the last trigger."""
    found = await get_schedule.execute(principal=request.principal, schedule=schedule)
    return Response(schedule_view(found), headers=etag(found.version))


@patch(
    "/schedules/{schedule:str}",
    summary="Change, pause or resume a schedule",
    responses=documented(403, 404, 409, 412, 413),
)
async def update_schedule(
    request: ApiRequest,
    schedule: SchedulePath,
    data: JSONBody[UpdateScheduleBody],
    update_schedule: NamedDependency[UpdateSchedule],
    if_match: IfMatch = None,
) -> Response[ScheduleView]:
    """Requires the role admin. Triggers that were due while the schedule was paused are skipped."""
    command = data.to_command(request.principal, schedule, expected_version=expected_version(if_match))
    changed = await update_schedule.execute(command)
    return Response(schedule_view(changed), headers=etag(changed.version))


@delete("/schedules/{schedule:str}", summary="Delete a schedule", responses=documented(403, 404))
async def delete_schedule(
    request: ApiRequest, schedule: SchedulePath, delete_schedule: NamedDependency[DeleteSchedule]
) -> None:
    """Requires the role admin. Runs already started continue."""
    await delete_schedule.execute(DeleteScheduleCommand(principal=request.principal, schedule=schedule))
