"""ForkThread: begin a thread with the messages of another one, up to a message that is said differently."""

from dataclasses import dataclass

from application.system.ports import Clock, IdSource
from application.threads.ports import ForkedThread, ThreadStore
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import MessageId, ThreadId
from domain.json_value import JsonObject
from domain.threads.thread import ForkPoint, Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkThreadCommand:
    """`before` is the first message that is not copied; without it all are. `metadata` is that of the thread by default."""

    principal: Principal
    thread_id: ThreadId
    before: MessageId | None = None
    metadata: JsonObject | None = None


class ForkThread:
    """Rules:
    - Requires `runner`. The thread stays as it is; the fork has its team.
    - Only a message of a user is left out with what follows it, so that each tool call has its result.
    - A thread in quarantine is not forked: its messages would leave it.
    - While a run is unfinished, the thread is forked only before a message.
    - Files of the thread are not copied; those attached to messages are part of them.

    Raises: ServiceError role_insufficient, thread_not_found, message_not_found, fork_place_invalid, thread_busy,
    thread_quarantined.
    """

    def __init__(self, *, threads: ThreadStore, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ForkThreadCommand) -> ForkedThread:
        principal = command.principal
        principal.require(Permission.RUNS_START)
        organization_id = principal.organization_id
        forked = principal.found(
            await self._threads.get(organization_id, command.thread_id), "thread", command.thread_id
        )
        new = Thread(
            id=ThreadId(self._ids.new("thr")),
            organization_id=organization_id,
            metadata=forked.metadata if command.metadata is None else command.metadata,
            created_at=self._clock.now(),
            forked_from=ForkPoint(thread_id=forked.id, before=command.before),
            team=forked.team,
        )
        return ForkedThread(thread=new, replaced=await self._threads.fork(new))
