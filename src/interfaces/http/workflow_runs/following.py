"""Streaming the events of a workflow run."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from application.workflows.run_queries import GetWorkflowRun, WatchWorkflowRun
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.ids import WorkflowRunId
from interfaces.http.sse import EventStream, end_frame
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.workflow_runs.views import workflow_event_frame

logger = logging.getLogger(__name__)


class WorkflowRunStreams:
    """Streams the events of a workflow run after a point, and `end` once it has ended or waits
    for a person."""

    def __init__(
        self, *, watch: WatchWorkflowRun, get_run: GetWorkflowRun, places: StreamPlaces, heartbeat_s: float
    ) -> None:
        self._watch = watch
        self._places = places
        self._get_run = get_run
        self._heartbeat_s = heartbeat_s

    async def of(self, principal: Principal, run_id: WorkflowRunId, *, after_seq: int) -> EventStream:
        """Stream a run. Raises NOT_FOUND, before anything is sent."""
        run = await self._get_run.execute(principal, run_id)
        place = self._places.take(principal)
        return EventStream(self._frames(principal, run.id, after_seq), heartbeat_s=self._heartbeat_s, place=place)

    async def _frames(self, principal: Principal, run_id: WorkflowRunId, after_seq: int) -> AsyncGenerator[bytes, None]:
        """An internal failure or an invalid key cuts the stream without `end`."""
        try:
            async with aclosing(self._watch.follow(principal, run_id, after_seq=after_seq)) as events:
                async for event in events:
                    yield workflow_event_frame(run_id, event)
            run = await self._get_run.execute(principal, run_id)
            yield end_frame(run.status)
        except ServiceError as error:
            logger.info(
                "stream of a workflow run ended by the server", extra={"workflow_run_id": run_id, "code": error.code}
            )
        except Exception:
            logger.exception("stream of a workflow run failed", extra={"workflow_run_id": run_id})
