"""API keys: opaque bearer tokens of which only a hash is stored, and the principal they stand for."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import ApiKeyId, OrganizationId
from domain.rate_limit import RateLimit

TOKEN_PREFIX = "dgm_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its token. `platform` keys also manage organizations. From `expires_at` on it is as good as revoked.
    `rate_limit` bounds its requests, beside what the service allows every key; `last_used_at` lags by up to a minute."""

    id: ApiKeyId
    organization_id: OrganizationId
    name: str
    role: Role
    platform: bool
    token_hash: str
    created_at: datetime
    expires_at: datetime | None = None
    rate_limit: RateLimit | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who acts: a key of one organization, with a role."""

    organization_id: OrganizationId
    key_id: ApiKeyId
    role: Role
    platform: bool = False

    def require(self, role: Role) -> None:
        """Raise FORBIDDEN unless the role is included in the principal's own."""
        if not self.role.includes(role):
            raise ServiceError(
                "role_insufficient", ErrorKind.FORBIDDEN, f"This needs the role {role}; the key has {self.role}."
            )

    def require_platform(self) -> None:
        """Raise FORBIDDEN unless the key is one that manages organizations."""
        if not self.platform:
            raise ServiceError(
                "platform_key_required",
                ErrorKind.FORBIDDEN,
                "This reaches beyond one organization and needs a platform key, such as the one of the first start.",
            )


def hash_token(token: str) -> str:
    """SHA-256 in hex. Tokens carry 256 random bits, so a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()
