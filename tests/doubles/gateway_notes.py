"""What processes leave for each other about calls of the gateway, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from domain.errors import not_found
from domain.gateway.note import GatewayNote
from domain.ids import GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId
from tests.doubles.state import InMemoryState


class InMemoryGatewayNotes:
    """The ports `GatewayNotes` and `ExpiredNotes`, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def leave(self, *notes: GatewayNote, due_at: datetime | None = None) -> None:
        """Store notes of one session."""
        for note in notes:
            stored = self._state.gateway_sessions.get(note.session_id)
            if stored is None:
                raise not_found("gateway session", note.session_id)
            stored.notes.setdefault(note.id, note)
            known = None if note.call_id is None else stored.calls.get(note.call_id)
            if due_at is not None and known is not None:
                stored.calls[known[0].id] = (replace(known[0], due_at=due_at), known[1])

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, note_id: str
    ) -> GatewayNote | None:
        """The note, or None."""
        return self._of(organization_id, session_id).get(GatewayNoteId(note_id))

    async def of_call(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayNote, ...]:
        """The call's notes, oldest first."""
        found = [note for note in self._of(organization_id, session_id).values() if note.call_id == call_id]
        return tuple(sorted(found, key=lambda note: (note.created_at, note.id)))

    async def answer(
        self,
        organization_id: OrganizationId,
        session_id: GatewaySessionId,
        answers: Mapping[GatewayNoteId, bytes],
        *,
        at: datetime,
    ) -> bool:
        """Put answers beside questions, all or none."""
        notes = self._of(organization_id, session_id)
        asked = [notes.get(note_id) for note_id in answers]
        if any(note is None or note.answer is not None or note.expires_at <= at for note in asked):
            return False
        for note_id, answer in answers.items():
            notes[note_id] = replace(notes[note_id], answer=answer)
        return True

    async def remove(self, organization_id: OrganizationId, *note_ids: GatewayNoteId) -> None:
        """They have served."""
        for stored in self._state.gateway_sessions.values():
            if stored.session.organization_id == organization_id:
                for note_id in note_ids:
                    stored.notes.pop(note_id, None)

    async def forget(self, *, before: datetime) -> int:
        """Remove what has expired."""
        count = 0
        for stored in self._state.gateway_sessions.values():
            expired = [note_id for note_id, note in stored.notes.items() if note.expires_at < before]
            for note_id in expired:
                del stored.notes[note_id]
            count += len(expired)
        return count

    def _of(self, organization_id: OrganizationId, session_id: GatewaySessionId) -> dict[GatewayNoteId, GatewayNote]:
        stored = self._state.gateway_sessions.get(session_id)
        return {} if stored is None or stored.session.organization_id != organization_id else stored.notes
