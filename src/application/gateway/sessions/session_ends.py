"""Watches the runs with which gateway sessions end, so that sessions need no polling."""

import asyncio
from collections.abc import Callable

from application.runs.ports import status_topic
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.workflows.ports import workflow_events_topic
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId

_LOOK_S = 60.0


class SessionEnds:
    """One listener for each watched session: to its run or workflow run."""

    def __init__(self, *, wakeups: Wakeups, clock: Clock) -> None:
        self._wakeups = wakeups
        self._clock = clock
        self._listening_since: dict[GatewaySessionId, float] = {}
        self._listeners: dict[GatewaySessionId, asyncio.Task[None]] = {}

    def follow(self, session: GatewaySession, may_have_ended: Callable[[GatewaySessionId], None]) -> None:
        """Call `may_have_ended` whenever the session must be read again, until `leave`."""
        if session.id not in self._listeners:
            listener = asyncio.create_task(self._listen(session, may_have_ended), name="gateway-session-end")
            self._listeners[session.id] = listener

    def hears_since(self, session_id: GatewaySessionId, moment: float) -> bool:
        """Whether the listener has watched since `moment` (monotonic)."""
        since = self._listening_since.get(session_id)
        return since is not None and since <= moment

    def leave(self, session_id: GatewaySessionId) -> None:
        self._listening_since.pop(session_id, None)
        listener = self._listeners.pop(session_id, None)
        if listener is not None:
            listener.cancel()

    async def _listen(self, session: GatewaySession, may_have_ended: Callable[[GatewaySessionId], None]) -> None:
        async with self._wakeups.subscribe(_topic_of(session)) as subscription:
            self._listening_since[session.id] = self._clock.monotonic()
            while True:
                if await subscription.wait(_LOOK_S):
                    may_have_ended(session.id)


def _topic_of(session: GatewaySession) -> str:
    if session.run_id is not None:
        return status_topic(session.run_id)
    assert session.wired is not None  # the session would not end with a run
    return workflow_events_topic(session.wired.workflow_run_id)
