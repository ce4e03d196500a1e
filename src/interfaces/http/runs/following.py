"""Following a new or existing run to its end, by waiting or by streaming its events. Each way is
one dependency: Litestar resolves several in a task group, which costs more than the rest of a
small request."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing

from litestar.types import Receive

from application.runs.new_run import StartedRun
from application.runs.ports import RunOutcome
from application.runs.queries import GetRun
from application.runs.start_run import StartRun, StartRunCommand
from application.runs.watch_run import WatchRun
from application.system.deadline import Deadline
from application.system.ended import ended
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.ids import RunId
from interfaces.disconnects import client_left
from interfaces.http.runs.answer import run_location
from interfaces.http.runs.frames import EventFrames
from interfaces.http.runs.views import RunWithMessagesView, run_view
from interfaces.http.sse import EventStream, end_frame
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.threads.views import message_view

logger = logging.getLogger(__name__)


def run_headers(started: StartedRun) -> dict[str, str]:
    """`Location`, and whether an idempotency key named an earlier run."""
    headers = run_location(started.run)
    if not started.created:
        headers["Idempotent-Replayed"] = "true"
    return headers


class RunWaits:
    """Responds once a run has ended or requires action, or when the client disconnects."""

    def __init__(self, *, start_run: StartRun, watch_run: WatchRun) -> None:
        self._start_run = start_run
        self._watch_run = watch_run

    def new_id(self) -> RunId:
        """An id for a command without an idempotency key."""
        return self._start_run.new_id()

    async def of_new(self, command: StartRunCommand, receive: Receive) -> tuple[StartedRun, RunWithMessagesView]:
        """Start a run and wait for it. With a `run_id` from `new_id`, the run is known to be
        new, so its stored state is not read first."""
        principal, run_id = command.principal, command.run_id
        if run_id is None:  # an idempotency key may name a run that has ended long ago
            started = await self._start_run.execute(command)
            return started, await self.of_existing(principal, started.run.id, receive)
        async with self._watch_run.listening(run_id) as bell:
            started = await self._start_run.execute(command)
            return started, await self._answer(
                principal, run_id, receive, self._watch_run.wait_for_new(principal, run_id, bell)
            )

    async def of_existing(
        self, principal: Principal, run_id: RunId, receive: Receive, *, timeout_s: float | None = None
    ) -> RunWithMessagesView:
        """Wait for a run, at most `timeout_s`. Raises NOT_FOUND."""
        waiting = self._watch_run.wait(principal, run_id, timeout_s=timeout_s)
        return await self._answer(principal, run_id, receive, waiting)

    async def _answer(
        self, principal: Principal, run_id: RunId, receive: Receive, waiting: Awaitable[RunOutcome]
    ) -> RunWithMessagesView:
        scope = Deadline(None)
        leaving = asyncio.create_task(client_left(receive))

        def give_up(left: "asyncio.Task[None]") -> None:
            if waits and not left.cancelled():
                scope.reschedule(asyncio.get_running_loop().time())

        waits = True
        leaving.add_done_callback(give_up)
        try:
            with scope:
                outcome = await waiting
        except TimeoutError:
            if not scope.expired():
                raise
            # The client is gone, so the current state of the run suffices.
            outcome = await self._watch_run.wait(principal, run_id, timeout_s=0)
        finally:
            waits = False
            leaving.cancel()
            await ended(leaving)
        run = run_view(outcome.run, principal.reads_as)
        return {"run": run, "messages": [message_view(message) for message in outcome.messages]}


class RunStreams:
    """Streams the events of a run after a point, and `end` once it has ended or requires action."""

    def __init__(
        self,
        *,
        start_run: StartRun,
        watch_run: WatchRun,
        get_run: GetRun,
        frames: EventFrames,
        places: StreamPlaces,
        heartbeat_s: float,
    ) -> None:
        self._start_run = start_run
        self._watch_run = watch_run
        self._get_run = get_run
        self._event_frames = frames
        self._places = places
        self._heartbeat_s = heartbeat_s

    async def of_new(self, command: StartRunCommand, *, after_seq: int) -> EventStream:
        with self._places.taken(command.principal) as place:
            started = await self._start_run.execute(command)
        frames = self._frames(command.principal, started.run.id, after_seq)
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=run_headers(started), place=place)

    async def of_existing(self, principal: Principal, run_id: RunId, *, after_seq: int) -> EventStream:
        """Stream a run. Raises NOT_FOUND, before anything is sent."""
        run = await self._get_run.execute(principal, run_id)
        place = self._places.take(principal)
        return EventStream(self._frames(principal, run.id, after_seq), heartbeat_s=self._heartbeat_s, place=place)

    async def _frames(self, principal: Principal, run_id: RunId, after_seq: int) -> AsyncGenerator[bytes, None]:
        """An internal failure cuts the stream without `end`; the client reconnects without
        losing events. So does an invalid key; reconnecting with it is then rejected."""
        try:
            async with aclosing(self._watch_run.follow(principal, run_id, after_seq=after_seq)) as followed:
                async for events in followed:
                    yield self._event_frames.of(events)
            run = await self._get_run.execute(principal, run_id)
            yield end_frame(run.status)
        except ServiceError as error:
            logger.info("stream of a run ended by the server", extra={"run_id": run_id, "code": error.code})
        except Exception:
            logger.exception("stream of a run failed", extra={"run_id": run_id})
