"""Sessions as JSON."""

from typing import Annotated, TypedDict

from domain.identity.console_session import ListedSession, SessionKind
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, ExpiresAt, Items, NextCursor, Timestamp


class SessionView(TypedDict):
    """A browser that is signed in to the console, a client that a person admitted at the gateway,
    or an impersonation."""

    id: Annotated[str, "Id of the session; that of a client is a gateway session's."]
    kind: Annotated[
        SessionKind,
        "A browser in the console, an OAuth client at the gateway, or a support session that acts as the holder.",
    ]
    holder: Annotated[str, "The user or API key that signed in, or that admitted the client."]
    client_name: Annotated[str | None, "What the client calls itself; null for browsers."]
    actor: Annotated[str | None, "The user or key that acts as the holder; null for other kinds."]
    reason: Annotated[str | None, "Why it acts as the holder; null for other kinds."]
    address: Annotated[str | None, "Address that the sign-in came from; null for clients."]
    user_agent: Annotated[str | None, "What the browser said of itself at the sign-in; null for clients."]
    created_at: CreatedAt
    last_seen_at: Annotated[Timestamp | None, "Last request, up to five minutes late; null for clients."]
    expires_at: ExpiresAt


class SessionPage(TypedDict):
    """A page of sessions; `next_cursor` is null on the last one."""

    data: Items[SessionView]
    next_cursor: NextCursor


class EndedSessionsView(TypedDict):
    """How many sessions ended."""

    ended: Annotated[int, "Number of sessions that ended."]


def session_view(session: ListedSession) -> SessionView:
    return {
        "id": session.id,
        "kind": session.kind,
        "holder": session.holder,
        "client_name": session.client_name,
        "actor": session.actor,
        "reason": session.reason,
        "address": session.address,
        "user_agent": session.user_agent,
        "created_at": timestamp(session.created_at),
        "last_seen_at": None if session.last_seen_at is None else timestamp(session.last_seen_at),
        "expires_at": timestamp(session.expires_at),
    }
