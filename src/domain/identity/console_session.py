"""Sessions: browsers that are signed in to the console, and clients that a person admitted at the
gateway."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.ids import ApiKeyId, ConsoleSessionId, IdentityProviderId, OrganizationId

SESSION_LASTS = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=5)
"""`last_seen_at` lags by up to this."""
MAX_SESSIONS = 100
"""Of one user or API key. A new one ends the oldest."""
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSession:
    """A browser that a user or an API key (`holder`) signed in to the console.

    - `provider_id` is where a user signed in; None with an API key.
    - `address` and `user_agent` are what the sign-in came from, as the browser or a proxy says:
      hints, no proof.
    """

    id: ConsoleSessionId
    organization_id: OrganizationId
    holder: ApiKeyId
    provider_id: IdentityProviderId | None = None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    address: str | None = None
    user_agent: str | None = None


class SessionKind(StrEnum):
    CONSOLE = "console"
    CLIENT = "client"
    IMPERSONATION = "impersonation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session as people see it: a browser in the console, an OAuth client at the gateway
    (`client_name`), whose id is that of its gateway session, or an impersonation: `actor` acts as
    the holder for a `reason`."""

    id: str
    kind: SessionKind
    holder: ApiKeyId
    created_at: datetime
    last_seen_at: datetime | None
    expires_at: datetime
    address: str | None
    user_agent: str | None
    client_name: str | None
    actor: str | None = None
    reason: str | None = None


def shown_line(text: str | None) -> str | None:
    """What a browser says of itself: one printable line, cut."""
    return "".join(character for character in text or "" if character.isprintable())[:_MAX_TEXT] or None
