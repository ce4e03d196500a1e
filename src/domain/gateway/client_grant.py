"""Grants: a person's consent that an OAuth client uses the tools of an agent, by a gateway
session."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, replace
from datetime import datetime

from domain.ids import GatewaySessionId, OrganizationId

CODE_PREFIX = "dgk_"
REFRESH_PREFIX = "dgr_"

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientGrant:
    """What the token endpoint needs to know of a grant. The session has person, agent and client,
    and ends with the grant.

    - `redirect_uri`, `resource` and `challenge` are of the authorization request; its code redeems
      once, with the same.
    - All refresh tokens of a grant have one secret in common, hashed as `family_hash`: a token of
      the family with another rest than `refresh_hash` is one that was used before.
    """

    session_id: GatewaySessionId
    organization_id: OrganizationId
    client_hash: str
    redirect_uri: str
    resource: str
    challenge: str
    code_hash: str
    code_expires_at: datetime
    redeemed_at: datetime | None = None
    family_hash: str | None = None
    refresh_hash: str | None = None

    def renewed(self, *, family_hash: str, refresh_hash: str, at: datetime) -> "ClientGrant":
        """The grant once its code was redeemed, or its refresh token was used, at `at`."""
        return replace(self, redeemed_at=self.redeemed_at or at, family_hash=family_hash, refresh_hash=refresh_hash)

    def is_proven_by(self, verifier: str) -> bool:
        """Whether the PKCE verifier belongs to the challenge (RFC 7636, S256)."""
        if _VERIFIER.fullmatch(verifier) is None:
            return False
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        return hmac.compare_digest(digest, self.challenge)


def is_challenge(text: str) -> bool:
    """Whether it can be a PKCE challenge of the method S256."""
    return _CHALLENGE.fullmatch(text) is not None
