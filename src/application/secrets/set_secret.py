"""SetSecret: store a named secret or replace its value."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.secrets.ports import ForgetServer, SecretStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.secrets.secret import Secret, require_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSecretCommand:
    """`value` is stored as it is, including spaces and line ends."""

    principal: Principal
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSecretResult:
    secret: Secret
    created: bool


class SetSecret:
    """Rules:
    - Admins set secrets of their organization; values cannot be read back.
    - MCP servers use a new value with their next connection; open connections are closed after
      their calls end. Model providers use it with the next call.
    - Audited as `secret.set`, without the value.

    Raises: ServiceError role_insufficient, secret_invalid.
    """

    def __init__(self, *, secrets: SecretStore, forget_server: ForgetServer, clock: Clock, ids: IdSource) -> None:
        self._secrets = secrets
        self._forget_server = forget_server
        self._clock = clock
        self._ids = ids

    async def execute(self, command: SetSecretCommand) -> SetSecretResult:
        principal = command.principal
        principal.require(Permission.SECRETS_MANAGE)
        require_storable(command.name, command.value)
        now = self._clock.now()
        organization_id = principal.organization_id
        secret = Secret(organization_id=organization_id, name=command.name, created_at=now, updated_at=now)
        audit = audit_entry(principal, AuditAction.SECRET_SET, command.name, ids=self._ids, at=now)
        created = await self._secrets.put(secret, command.value, audit)
        for user in await self._secrets.users(organization_id, command.name):
            if user.server_id is not None:
                await self._forget_server(organization_id, user.server_id)
        stored = existing(
            secret if created else await self._secrets.get(organization_id, command.name), "secret", command.name
        )
        return SetSecretResult(secret=stored, created=created)
