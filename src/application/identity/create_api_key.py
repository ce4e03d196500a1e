"""CreateApiKey: a new key for the caller's organization, its token shown this once."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.identity.ports import IdentityStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid
from domain.identity.api_key import ApiKey, Principal, hash_token
from domain.identity.role import Role
from domain.ids import ApiKeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateApiKeyCommand:
    """`name` is for people; `role` what the key may do."""

    principal: Principal
    name: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedApiKey:
    """The key and its token, which cannot be had again."""

    key: ApiKey
    token: str = field(repr=False)


class CreateApiKey:
    """Admins make keys, for their own organization only. Only a hash of the token is stored. Audited `key.created`."""

    def __init__(self, *, identities: IdentityStore, clock: Clock, ids: IdSource) -> None:
        self._identities = identities
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateApiKeyCommand) -> CreatedApiKey:
        """The new key. Raises FORBIDDEN, INVALID `api_key_invalid`."""
        command.principal.require(Role.ADMIN)
        if not command.name.strip():
            raise invalid(
                "api_key_invalid", "The API key is not valid.", Violation(path="name", message="must not be empty")
            )
        now = self._clock.now()
        token = self._ids.new_token()
        key = ApiKey(
            id=ApiKeyId(self._ids.new("key")),
            organization_id=command.principal.organization_id,
            name=command.name,
            role=command.role,
            platform=False,
            token_hash=hash_token(token),
            created_at=now,
        )
        audit = audit_entry(
            command.principal,
            AuditAction.KEY_CREATED,
            key.id,
            ids=self._ids,
            at=now,
            details={"name": key.name, "role": key.role.value},
        )
        await self._identities.add_key(key, audit)
        return CreatedApiKey(key=key, token=token)
