"""CreateThread: create a conversation."""

from dataclasses import dataclass, field

from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateThreadCommand:
    """`metadata` is stored unchanged for the client."""

    principal: Principal
    metadata: JsonObject = field(default_factory=dict)


class CreateThread:
    """Requires `runner`. Raises: ServiceError role_insufficient."""

    def __init__(self, *, threads: ThreadStore, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateThreadCommand) -> Thread:
        command.principal.require(Permission.RUNS_START)
        thread = Thread(
            id=ThreadId(self._ids.new("thr")),
            organization_id=command.principal.organization_id,
            metadata=command.metadata,
            created_at=self._clock.now(),
        )
        await self._threads.add(thread)
        return thread
