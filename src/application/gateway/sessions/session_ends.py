"""Hears when what a gateway session ends with may have ended, so that nobody has to look again and again."""

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
    """Of each session that is followed, one listener: to its run, or to the workflow run whose tools it has."""

    def __init__(self, *, wakeups: Wakeups, clock: Clock) -> None:
        self._wakeups = wakeups
        self._clock = clock
        self._listening_since: dict[GatewaySessionId, float] = {}
        self._listeners: dict[GatewaySessionId, asyncio.Task[None]] = {}

    def follow(self, session: GatewaySession, may_have_ended: Callable[[GatewaySessionId], None]) -> None:
        """Call `may_have_ended` whenever the session is to be read anew, until `leave`."""
        if session.id not in self._listeners:
            listener = asyncio.create_task(self._listen(session, may_have_ended), name="gateway-session-end")
            self._listeners[session.id] = listener

    def hears_since(self, session_id: GatewaySessionId, moment: float) -> bool:
        """Whether all that happened to it after `moment` (monotonic) would have been heard."""
        since = self._listening_since.get(session_id)
        return since is not None and since <= moment

    def leave(self, session_id: GatewaySessionId) -> None:
        """Nothing is to be heard of the session any more."""
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
    assert session.wired is not None  # it would not end with anything
    return workflow_events_topic(session.wired.workflow_run_id)
