"""Names who or what started runs: a schedule, a workflow, a gateway session, a run before it, a key, or a person."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from application.identity.ports import IdentityStore, UserStore
from application.schedules.queries import GetSchedule
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import ApiKeyId, RunId, UserId
from domain.runs.called_by import CalledBy
from domain.runs.run import Run
from interfaces.console_paths import PATH

_SCHEDULE = "schedule:"
_USER = "usr_"
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """In words, and the page about it, if there is one."""

    name: str
    link: str | None = None


class RunStarters:
    """Reads each name once per list, some at once."""

    def __init__(self, *, identities: IdentityStore, users: UserStore, get_schedule: GetSchedule) -> None:
        self._identities = identities
        self._users = users
        self._get_schedule = get_schedule

    async def of(self, principal: Principal, runs: Iterable[Run]) -> dict[RunId, Starter]:
        """By run."""
        runs = tuple(runs)
        names = await self.names(principal, (run.requested_by for run in runs))
        return {run.id: _by_cause(run) or Starter(name=names.get(run.requested_by or "", "–")) for run in runs}

    async def names(self, principal: Principal, ids: Iterable[str | None]) -> dict[str, str]:
        """Names of keys, users and schedules by their ids; an id without a name is its own."""
        wanted = [each for each in dict.fromkeys(ids) if each is not None]
        places = asyncio.Semaphore(_AT_ONCE)

        async def named(starter: str) -> str:
            async with places:
                return await self._name(principal, starter)

        return dict(zip(wanted, await asyncio.gather(*map(named, wanted)), strict=True))

    async def _name(self, principal: Principal, starter: str) -> str:
        if starter.startswith(_USER):
            user = await self._users.get(principal.organization_id, UserId(starter))
            return starter if user is None else user.name or user.email or starter
        if not starter.startswith(_SCHEDULE):
            key = await self._identities.key(principal.organization_id, ApiKeyId(starter))
            return starter if key is None else key.name
        schedule_id = starter.removeprefix(_SCHEDULE)
        try:
            schedule = await self._get_schedule.execute(principal, schedule_id)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return "a deleted schedule"
        return f"schedule {schedule.name}"


def _by_cause(run: Run) -> Starter | None:
    """What started it, if it was no key itself."""
    if run.retry_of is not None:
        return Starter(name="retry", link=f"{PATH}/runs/{run.retry_of}")
    workflow_run = run.metadata.get("workflow_run_id")
    if isinstance(workflow_run, str):
        return Starter(name="a workflow", link=f"{PATH}/workflows/runs/{workflow_run}")
    return None if CalledBy.of(run.metadata) is None else Starter(name="an agent")
