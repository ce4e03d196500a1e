"""Ports of the gateway slice: stored sessions, and the ledger of their calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.approvals.approval import Approval, ApprovalOutcome
from domain.audit.event import AuditEvent
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.client import ClientSettings, GatewayClient
from domain.gateway.note import GatewayNote
from domain.gateway.session import GatewaySession
from domain.ids import GatewayClientId, GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId
from domain.threads.thread import Quarantine, Thread


def session_topic(session_id: GatewaySessionId) -> str:
    """Woken when a session has ended before its time."""
    return f"gateway-session:{session_id}"


class GatewaySessionStore(Protocol):
    """Sessions by id and by the hash of their token. Those of a run are over with it: they are read as revoked."""

    async def add(self, session: GatewaySession, audit: AuditEvent, *, thread: Thread | None) -> None:
        """Store a session, with the thread that is its own."""
        ...

    async def keep(self, session: GatewaySession, *, thread: Thread) -> GatewaySession:
        """Store a session that has no token, with its thread, unless it is there; the one that is stored then."""
        ...

    async def get(self, organization_id: OrganizationId, session_id: GatewaySessionId) -> GatewaySession | None:
        """The session, ended or not, or None."""
        ...

    async def by_token_hash(self, token_hash: str) -> GatewaySession | None:
        """The session of that token, in whichever organization, ended or not; None if there is none."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[GatewaySession]:
        """Sessions with a token, newest first."""
        ...

    async def revoke(self, organization_id: OrganizationId, session_id: GatewaySessionId, audit: AuditEvent) -> bool:
        """End the session at `audit.at`, and cancel approvals that it waits for. False, and no entry, if there is none that has
        not ended."""
        ...


class GatewayClientStore(Protocol):
    """What clients of the older generation asked for since their handshakes. One that asked for nothing is not stored."""

    async def settings(self, organization_id: OrganizationId, client_id: GatewayClientId) -> ClientSettings:
        """What is stored of the client, or what those have that asked for nothing."""
        ...

    async def change(
        self, client: GatewayClient, change: Callable[[ClientSettings], ClientSettings]
    ) -> ClientSettings | None:
        """Store what `change` makes of the client's settings, one change at a time. None, and nothing is stored, for a client
        that has ended. Raises what `change` raises, and NOT_FOUND `gateway_session_not_found` once the session is deleted."""
        ...


class GatewayLedger(Protocol):
    """Calls of gateway sessions. Many callers' entries may share one transaction, and each waits for its own to be
    durable. Raises UNAVAILABLE `storage_unavailable`, NOT_FOUND `gateway_session_not_found` once the session is deleted."""

    async def intend(self, call: GatewayCall, *, max_calls: int | None = None) -> bool:
        """Record a call before it is sent. False, and nothing is recorded, if the session has made `max_calls` of the
        tool's calls already."""
        ...

    async def settle(self, settlement: GatewaySettlement, audit: AuditEvent) -> bool:
        """Store the outcome of a recorded call. False, and nothing is stored, if it was settled before."""
        ...

    async def refuse(self, settlement: GatewaySettlement, audit: AuditEvent) -> None:
        """Store a call that is not made, with its outcome."""
        ...

    async def halt(self, settlement: GatewaySettlement, audit: tuple[AuditEvent, ...], quarantine: Quarantine) -> None:
        """Store the outcome of a call, recorded before or not, that ends its session: that is revoked, approvals that it waits
        for are cancelled, and its thread is put in quarantine."""
        ...

    async def call_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayCall, GatewaySettlement | None] | None:
        """One call of the session, with what became of it, if that is known; None if there is no such call."""
        ...

    async def calls_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId
    ) -> tuple[tuple[GatewayCall, GatewaySettlement | None], ...]:
        """The session's calls in the order in which they were recorded, with what became of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that was not sent, as its client made it, and the approval that it was last asked for."""

    call: GatewayCall
    approval: Approval


class GatewayApprovals(Protocol):
    """Calls of gateway sessions that need an approval. Raises NOT_FOUND `gateway_session_not_found` like the ledger."""

    async def ask(
        self,
        call: GatewayCall,
        approval: Approval,
        *,
        instead_of: Approval | None = None,
        max_calls: int | None = None,
    ) -> bool:
        """Store a call that awaits its approval, with that and its timer; or, `instead_of` one that is stale, the new approval
        of a stored call. False, and nothing is stored, if the session has made `max_calls` of the tool's calls, or if the
        stored call awaits another approval by now."""
        ...

    async def asked(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, name: str
    ) -> tuple[AskedCall, ...]:
        """The tool's calls that await an approval, or that have one and were neither sent nor settled; oldest first."""
        ...

    async def begin(self, asked: AskedCall, call: GatewayCall) -> bool:
        """Record the asked call as about to be sent, with `call`'s arguments and moments. Its approval, if that is pending
        still, is stale. False, and nothing is stored, if it was sent or settled before, or awaits another approval."""
        ...

    async def end(self, approval: Approval, outcome: ApprovalOutcome, audit: tuple[AuditEvent, ...]) -> bool:
        """End a pending approval, once. False, and nothing is stored, if it has ended."""
        ...


def call_topic(call_id: ToolCallId) -> str:
    """Woken when a note about the call is left, or answered."""
    return f"gateway-call:{call_id}"


def cancellation_topic(note_id: GatewayNoteId) -> str:
    """Woken when what the note takes back may be at work in another process."""
    return f"gateway-cancel:{note_id}"


class GatewayNotes(Protocol):
    """What processes leave for each other about calls under way. Of another organization or session there is nothing."""

    async def leave(self, *notes: GatewayNote, due_at: datetime | None = None) -> None:
        """Store notes of one session; a cancellation that is there already stays. With `due_at`, the call that they are about
        is waited for until then. Raises NOT_FOUND `gateway_session_not_found`."""
        ...

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, note_id: str
    ) -> GatewayNote | None:
        """The note, or None."""
        ...

    async def of_call(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayNote, ...]:
        """The call's notes, oldest first."""
        ...

    async def answer(
        self,
        organization_id: OrganizationId,
        session_id: GatewaySessionId,
        answers: Mapping[GatewayNoteId, bytes],
        *,
        at: datetime,
    ) -> bool:
        """Put answers beside questions. False, and nothing is stored, if one of them was answered, removed, or has expired."""
        ...

    async def remove(self, organization_id: OrganizationId, *note_ids: GatewayNoteId) -> None:
        """They have served."""
        ...


class ExpiredNotes(Protocol):
    """Notes that whoever left them did not remove."""

    async def forget(self, *, before: datetime) -> int:
        """Remove those of all organizations that expired `before` then; how many."""
        ...


class LostCalls(Protocol):
    """Calls that whoever made them will not settle."""

    async def lost(self, *, before: datetime | None, limit: int) -> tuple[tuple[GatewaySession, GatewayCall], ...]:
        """Recorded calls of all organizations that are due `before` then; None: all of them."""
        ...
