"""RequestCancellations: a client with an older MCP version cancels a request that another process
may execute."""

from dataclasses import dataclass
from datetime import timedelta

from application.gateway.ports import GatewayNotes, cancellation_topic
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.ids import GatewayNoteId, derived_id

_KEPT_S = 60.0
"""Long enough for the other process to read the note; short, because a client may use its ids again
after another handshake."""
_REREAD_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request by the id of its client. `client` distinguishes clients of one session that
    identify themselves."""

    session: GatewaySession
    client: str
    request_id: str | int

    @property
    def note_id(self) -> GatewayNoteId:
        """Id of the cancellation."""
        kind = type(self.request_id).__name__  # 1 and "1" are different ids
        return GatewayNoteId(derived_id("gwn", self.session.id, self.client, kind, self.request_id, "cancelled"))


class RequestCancellations:
    """Rules:
    - A cancellation is a row; the notification carries only its id.
    - A cancellation is valid only for the session and client of the request.
    - A request that no process executes is not waited for.
    """

    def __init__(self, *, notes: GatewayNotes, wakeups: Wakeups, clock: Clock) -> None:
        self._notes = notes
        self._wakeups = wakeups
        self._clock = clock

    async def cancel(self, sent: SentRequest) -> None:
        """Notify the process that executes the request."""
        now, session = self._clock.now(), sent.session
        note = GatewayNote(
            id=sent.note_id,
            organization_id=session.organization_id,
            session_id=session.id,
            kind=GatewayNoteKind.CANCELLATION,
            created_at=now,
            expires_at=now + timedelta(seconds=_KEPT_S),
        )
        await self._notes.leave(note)
        self._wakeups.wake(cancellation_topic(sent.note_id))

    async def cancelled(self, sent: SentRequest) -> None:
        """Return once the request is cancelled, perhaps before it was sent."""
        session = sent.session
        async with self._wakeups.subscribe(cancellation_topic(sent.note_id)) as woken:
            while True:
                note = await self._notes.get(session.organization_id, session.id, sent.note_id)
                if note is not None and self._clock.now() < note.expires_at:
                    await self._notes.remove(session.organization_id, sent.note_id)
                    return
                await woken.wait(_REREAD_S)
