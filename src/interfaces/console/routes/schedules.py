"""Schedules: when they run next, what came of the last time, and changes by admins."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.agents.queries import ListAgents
from application.schedules.create_schedule import CreateSchedule, CreateScheduleCommand
from application.schedules.delete_schedule import DeleteSchedule, DeleteScheduleCommand
from application.schedules.ports import CronTimes
from application.schedules.queries import GetSchedule, ListSchedules
from application.schedules.update_schedule import UpdateSchedule, UpdateScheduleCommand
from application.system.ports import Clock
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.schedules.schedule import Schedule
from domain.threads.message import TextContent
from interfaces.console.faults import FormCheck, entered_version
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.run_starters import RunStarters
from interfaces.console.toasts import toast
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH

NEXT = 5
"""Run times that are shown of each schedule."""


class SchedulePages:
    """Data of the page of schedules."""

    def __init__(
        self,
        *,
        list_schedules: ListSchedules,
        list_agents: ListAgents,
        name_agents: NameAgents,
        run_starters: RunStarters,
        cron_times: CronTimes,
        clock: Clock,
    ) -> None:
        self._list_schedules = list_schedules
        self._list_agents = list_agents
        self._name_agents = name_agents
        self._run_starters = run_starters
        self._times = cron_times
        self._clock = clock

    async def of(self, principal: Principal) -> dict[str, object]:
        """All schedules, newest first."""
        schedules = await all_of(lambda page: self._list_schedules.execute(principal, page))
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        return {
            "schedules": [(schedule, tuple(self._next(schedule))) for schedule in schedules],
            "agents": [each for each in agents if each.config.enabled],
            "agent_names": await self._name_agents.execute(principal, (each.agent_id for each in schedules)),
            "may_change": principal.may(Permission.SCHEDULES_MANAGE),
            "is_person": principal.person_id is not None,
            "people": await self.people(principal, schedules),
        }

    async def people(self, principal: Principal, schedules: Iterable[Schedule]) -> dict[str, str]:
        """Names of the people whose accounts are used, by their ids."""
        return await self._run_starters.names(principal, (each.person_id for each in schedules))

    def _next(self, schedule: Schedule) -> Iterator[datetime]:
        """The next times; none while it is paused."""
        after: datetime | None = self._clock.now()
        for _ in range(NEXT if schedule.enabled else 0):
            if after is None or (after := self._times.next_after(schedule.cron, schedule.timezone, after)) is None:
                return
            yield after


@get("/schedules")
async def show_schedules(
    request: ConsoleRequest, pages: NamedDependency[Pages], schedule_pages: NamedDependency[SchedulePages]
) -> Response[str]:
    return pages.show(request, "schedules.html", await schedule_pages.of(request.principal))


@post("/schedules", status_code=200)
async def create_schedule(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], create_schedule: NamedDependency[CreateSchedule]
) -> Response[str]:
    """Save a new schedule, and show it in the list."""
    with FormCheck() as check:
        await create_schedule.execute(
            CreateScheduleCommand(
                principal=request.principal,
                name=data.get("name", ""),
                cron=data.get("cron", ""),
                timezone=data.get("timezone") or "UTC",
                agent=data.get("agent", ""),
                input=(TextContent(text=data.get("input", "")),),
                own_account="own_account" in data,
            )
        )
        return _to_list()
    return check.shown(pages, request)


@get("/schedules/{schedule_id:str}")
async def show_schedule(
    *,
    request: ConsoleRequest,
    schedule_id: FromPath[str],
    pages: NamedDependency[Pages],
    get_schedule: NamedDependency[GetSchedule],
    list_agents: NamedDependency[ListAgents],
    schedule_pages: NamedDependency[SchedulePages],
) -> Response[str]:
    principal = request.principal
    principal.require(Permission.SCHEDULES_MANAGE)
    schedule = await get_schedule.execute(principal, schedule_id)
    agents = await all_of(lambda page: list_agents.execute(principal=principal, page=page))
    context = {
        "schedule": schedule,
        "agents": agents,
        "text": _text_of(schedule),
        "person_id": principal.person_id,
        "people": await schedule_pages.people(principal, (schedule,)),
    }
    return pages.show(request, "schedule.html", context)


@post("/schedules/{schedule_id:str}", status_code=200)
async def save_schedule(
    *,
    request: ConsoleRequest,
    schedule_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    update_schedule: NamedDependency[UpdateSchedule],
) -> Response[str]:
    """Save it, unless another admin saved since the form was opened. An input with images or files
    has no field, and stays."""
    changes: dict[str, object] = {name: data.get(name, "").strip() for name in ("name", "cron", "timezone")}
    if "input" in data:
        changes["input"] = (TextContent(text=data["input"].replace("\r\n", "\n")),)
    with FormCheck() as check:
        await update_schedule.execute(
            UpdateScheduleCommand(
                principal=request.principal,
                schedule=schedule_id,
                changes=changes,
                agent=data.get("agent"),
                expected_version=entered_version(data.get("version", "")),
                own_account="own_account" in data if request.principal.person_id is not None else None,
            )
        )
        return _to_list()
    return check.shown(pages, request)


@post("/schedules/{schedule_id:str}/enabled", status_code=200)
async def pause_or_resume(
    request: ConsoleRequest,
    schedule_id: FromPath[str],
    data: Form,
    update_schedule: NamedDependency[UpdateSchedule],
) -> Response[str]:
    changes = {"enabled": data.get("enabled") == "yes"}
    await update_schedule.execute(
        UpdateScheduleCommand(principal=request.principal, schedule=schedule_id, changes=changes)
    )
    return _to_list(said=f"The schedule is {'resumed' if changes['enabled'] else 'paused'}.")


@post("/schedules/{schedule_id:str}/delete", status_code=200)
async def delete_schedule(
    request: ConsoleRequest, schedule_id: FromPath[str], delete_schedule: NamedDependency[DeleteSchedule]
) -> Response[str]:
    await delete_schedule.execute(DeleteScheduleCommand(principal=request.principal, schedule=schedule_id))
    return _to_list()


def _text_of(schedule: Schedule) -> str | None:
    """The message, if it is one text; None for one with images or files."""
    match schedule.input:
        case (TextContent(text=text),):
            return text
        case _:
            return None


def _to_list(*, said: str = "") -> Response[str]:
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/schedules", **toast(said)})
