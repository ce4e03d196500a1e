"""CreateThread: create a conversation."""

from dataclasses import dataclass, field

from application.identity.team_checks import TeamChecks
from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateThreadCommand:
    """`metadata` is stored unchanged for the client. `team` is the group that the thread belongs
    to; without it, that of the first run's agent."""

    principal: Principal
    team: str | None = None
    metadata: JsonObject = field(default_factory=dict)


class CreateThread:
    """Requires `runner`; `TeamChecks` has the rules of teams. Raises: ServiceError
    role_insufficient, thread_invalid."""

    def __init__(self, *, threads: ThreadStore, team_checks: TeamChecks, clock: Clock, ids: IdSource) -> None:
        self._team_checks = team_checks
        self._threads = threads
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateThreadCommand) -> Thread:
        command.principal.require(Permission.RUNS_START)
        if (wrong := await self._team_checks.violation(command.principal, command.team)) is not None:
            raise invalid("thread_invalid", "The thread is not valid.", wrong)
        thread = Thread(
            id=ThreadId(self._ids.new("thr")),
            organization_id=command.principal.organization_id,
            metadata=command.metadata,
            created_at=self._clock.now(),
            team=command.team,
        )
        await self._threads.add(thread)
        return thread
