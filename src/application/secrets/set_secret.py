"""SetSecret: store a named secret, or give it a new value."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.secrets.ports import ForgetServer, SecretStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.secrets.secret import Secret, require_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSecretCommand:
    """The value is taken as it is, spaces and line ends included."""

    principal: Principal
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSecretResult:
    """The secret, and whether it is new."""

    secret: Secret
    created: bool


class SetSecret:
    """Admins set secrets of their organization. The value cannot be read back. A new value reaches the servers that use
    it with their next connection (open ones are closed once their calls are done) and model providers with the next call. Audited `secret.set`, without the
    value."""

    def __init__(self, *, secrets: SecretStore, forget_server: ForgetServer, clock: Clock, ids: IdSource) -> None:
        self._secrets = secrets
        self._forget_server = forget_server
        self._clock = clock
        self._ids = ids

    async def execute(self, command: SetSecretCommand) -> SetSecretResult:
        """The secret as it is now. Raises FORBIDDEN, INVALID `secret_invalid`."""
        principal = command.principal
        principal.require(Role.ADMIN)
        require_storable(command.name, command.value)
        now = self._clock.now()
        organization_id = principal.organization_id
        secret = Secret(organization_id=organization_id, name=command.name, created_at=now, updated_at=now)
        audit = audit_entry(principal, AuditAction.SECRET_SET, command.name, ids=self._ids, at=now)
        created = await self._secrets.put(secret, command.value, audit)
        for user in await self._secrets.users(organization_id, command.name):
            if user.server_id is not None:
                await self._forget_server(organization_id, user.server_id)
        stored = secret if created else await self._secrets.get(organization_id, command.name)
        if stored is None:
            raise not_found("secret", command.name)
        return SetSecretResult(secret=stored, created=created)
