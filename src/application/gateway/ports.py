"""Ports of the gateway slice: sessions, ledger, approvals and notes."""

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
from domain.ids import ApiKeyId, GatewayClientId, GatewayNoteId, GatewaySessionId, OrganizationId, ToolCallId
from domain.teams import Teams
from domain.threads.thread import Quarantine, Thread


def session_topic(session_id: GatewaySessionId) -> str:
    """Signalled when a session is revoked."""
    return f"gateway-session:{session_id}"


class GatewaySessionStore(Protocol):
    """Sessions by id and by the hash of their token. A session of an ended run is read as
    revoked."""

    async def add(self, session: GatewaySession, audit: AuditEvent, *, thread: Thread | None) -> None:
        """Store a session, with its own thread if it has one."""

    async def keep(self, session: GatewaySession, *, thread: Thread) -> GatewaySession:
        """Store a session without a token and its thread, unless it exists. Returns the stored
        session."""

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, *, teams: Teams = None
    ) -> GatewaySession | None:
        """The session, ended or not; of agents that teams own, only of those of `teams`."""

    async def by_token_hash(self, token_hash: str) -> GatewaySession | None:
        """The session with that token in any organization, ended or not."""

    async def page(
        self, organization_id: OrganizationId, request: PageRequest, *, created_by: ApiKeyId | None = None
    ) -> Page[GatewaySession]:
        """Sessions with a token, newest first; with `created_by` only those that the key or user
        opened."""

    async def open_of_key(
        self, organization_id: OrganizationId, key_id: ApiKeyId, *, at: datetime, limit: int
    ) -> tuple[GatewaySessionId, ...]:
        """Up to `limit` sessions with a token that the key opened and that are open at `at`."""

    async def revoke(self, organization_id: OrganizationId, session_id: GatewaySessionId, audit: AuditEvent) -> bool:
        """End the session at `audit.at`, and cancel its pending approvals. False if no open session
        has this id."""


class GatewayClientStore(Protocol):
    """Settings of clients with older MCP versions since their handshakes. Defaults are not
    stored."""

    async def settings(self, organization_id: OrganizationId, client_id: GatewayClientId) -> ClientSettings:
        """The stored settings, otherwise defaults."""

    async def change(
        self, client: GatewayClient, change: Callable[[ClientSettings], ClientSettings]
    ) -> ClientSettings | None:
        """Store the result of `change`; changes of one client are serialized. None for a client
        that has ended. Raises what `change` raises, and NOT_FOUND `gateway_session_not_found`
        once the session is deleted."""


class GatewayLedger(Protocol):
    """Calls of gateway sessions. Entries of several callers may share one transaction; each caller
    waits until its own is durable. Raises UNAVAILABLE `storage_unavailable`, NOT_FOUND
    `gateway_session_not_found` once the session is deleted."""

    async def intend(self, call: GatewayCall, *, max_calls: int | None = None) -> bool:
        """Record a call before it is sent. False, and nothing is recorded, if the session has made
        `max_calls` calls of the tool."""

    async def settle(self, settlement: GatewaySettlement, audit: AuditEvent) -> bool:
        """Store the outcome of a recorded call. False if it was settled before."""

    async def refuse(self, settlement: GatewaySettlement, audit: AuditEvent) -> None:
        """Store a call that is not sent, with its outcome."""

    async def halt(self, settlement: GatewaySettlement, audit: tuple[AuditEvent, ...], quarantine: Quarantine) -> None:
        """Store the outcome of a call, recorded before or not, and end its session. The session is
        revoked, its pending approvals are cancelled, and its thread is quarantined."""

    async def call_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayCall, GatewaySettlement | None] | None:
        """One call of the session, with its outcome if known."""

    async def calls_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId
    ) -> tuple[tuple[GatewayCall, GatewaySettlement | None], ...]:
        """The session's calls in the order of recording, with their known outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that was not sent, and its latest approval."""

    call: GatewayCall
    approval: Approval


class GatewayApprovals(Protocol):
    """Calls of gateway sessions that require approval. Raises NOT_FOUND `gateway_session_not_found`
    like the ledger."""

    async def ask(
        self,
        call: GatewayCall,
        approval: Approval,
        *,
        instead_of: Approval | None = None,
        max_calls: int | None = None,
    ) -> bool:
        """Store a call with its approval and timer. With `instead_of`, replace the stale approval
        of a stored call. False, and nothing is stored, if the session has made `max_calls` calls
        of the tool, or if the stored call waits for another approval."""

    async def asked(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, name: str
    ) -> tuple[AskedCall, ...]:
        """The tool's calls with an approval that were neither sent nor settled, oldest first."""

    async def begin(self, asked: AskedCall, call: GatewayCall) -> bool:
        """Record the call as about to be sent, with the arguments and times of `call`. A pending
        approval becomes stale. False if the call was sent or settled before, or waits for
        another approval."""

    async def end(self, approval: Approval, outcome: ApprovalOutcome, audit: tuple[AuditEvent, ...]) -> bool:
        """End a pending approval, once. False if it has ended."""


def call_topic(call_id: ToolCallId) -> str:
    """Signalled when a note about the call is stored or answered."""
    return f"gateway-call:{call_id}"


def cancellation_topic(note_id: GatewayNoteId) -> str:
    """Signalled when a cancellation is stored."""
    return f"gateway-cancel:{note_id}"


class GatewayNotes(Protocol):
    """Notes between processes about running calls. Notes of other organizations or sessions are not
    visible."""

    async def leave(self, *notes: GatewayNote, due_at: datetime | None = None) -> None:
        """Store notes of one session; an existing cancellation stays unchanged. `due_at` extends
        the time for which the call is waited for. Raises NOT_FOUND `gateway_session_not_found`."""

    async def get(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, note_id: str
    ) -> GatewayNote | None: ...

    async def of_call(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayNote, ...]:
        """The call's notes, oldest first."""

    async def answer(
        self,
        organization_id: OrganizationId,
        session_id: GatewaySessionId,
        answers: Mapping[GatewayNoteId, bytes],
        *,
        at: datetime,
    ) -> bool:
        """Store answers to questions. False, and nothing is stored, if one was answered, removed or
        has expired."""

    async def remove(self, organization_id: OrganizationId, *note_ids: GatewayNoteId) -> None: ...


class ExpiredNotes(Protocol):
    """Notes that were not removed in time."""

    async def forget(self, *, before: datetime) -> int:
        """Remove expired notes of all organizations and return their number."""


class LostCalls(Protocol):
    """Calls whose process has ended."""

    async def lost(self, *, before: datetime | None, limit: int) -> tuple[tuple[GatewaySession, GatewayCall], ...]:
        """Recorded calls of all organizations with `due_at` before the given time; None: all of
        them."""
