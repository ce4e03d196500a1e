"""Named secrets in memory, and a vault whose key never changes."""

from application.secrets.ports import Reencryption, SecretUser, users_in_words
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import ErrorKind, ServiceError, conflict
from domain.ids import OrganizationId
from domain.secrets.secret import SECRET_UNAVAILABLE, Secret, SecretRef
from domain.workflows.compiler import secret_names
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemorySecretStore:
    """The `SecretStore` port over shared in-memory tables. `unreadable` are names of secrets
    elsewhere that cannot be read."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self.unreadable: set[str] = set()

    async def put(self, new: Secret, value: str, audit: AuditEvent) -> bool:
        """Store a new secret, or a new value."""
        key = (new.organization_id, new.name)
        stored = self._state.secrets.get(key)
        created_at = new.created_at if stored is None else stored[0].created_at
        secret = Secret(
            organization_id=new.organization_id, name=new.name, created_at=created_at, updated_at=new.updated_at
        )
        self._state.secrets[key] = (secret, value)
        self._state.record(audit)
        return stored is None

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        """Its dates."""
        stored = self._state.secrets.get((organization_id, name))
        return None if stored is None else stored[0]

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        """Secrets, newest first."""
        found = [secret for (owner, _), (secret, _value) in self._state.secrets.items() if owner == organization_id]
        return newest_first(found, lambda secret: by_time(secret.created_at, secret.name), request)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove a secret that nothing uses."""
        if (organization_id, name) not in self._state.secrets:
            return False
        users = await self.users(organization_id, name)
        if users:
            detail = f"The secret {name!r} is used by {users_in_words(users)}."
            raise conflict("secret_in_use", detail, used_by=", ".join(user.name for user in users))
        del self._state.secrets[organization_id, name]
        self._state.record(audit)
        return True

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        """What names the secret."""
        found = [
            SecretUser(server_id=server.id, name=server.config.slug)
            for server in self._state.servers.values()
            if server.organization_id == organization_id and name in server.config.secret_names
        ]
        providers = [
            SecretUser(name=provider.name)
            for provider in self._state.model_providers.values()
            if provider.organization_id == organization_id and name in provider.secret_names
        ]
        workflows = [
            SecretUser(workflow_id=workflow.id, name=workflow.definition.name)
            for workflow in self._state.workflows_in_use(organization_id)
            if name in secret_names(workflow.definition)
        ]
        schedules = [
            SecretUser(schedule_id=schedule.id, name=schedule.name)
            for schedule in self._state.schedules.values()
            if schedule.organization_id == organization_id
            and schedule.webhook is not None
            and schedule.webhook.secret == SecretRef(name)
        ]
        return (
            *sorted(found, key=lambda user: user.name),
            *sorted(providers, key=lambda user: user.name),
            *sorted(workflows, key=lambda user: user.name),
            *sorted(schedules, key=lambda user: user.name),
        )

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value."""
        if name in self.unreadable:
            detail = f"The secret {name!r} cannot be read: Vault does not answer."
            raise ServiceError(SECRET_UNAVAILABLE, ErrorKind.UNAVAILABLE, detail)
        stored = self._state.secrets.get((organization_id, name))
        return None if stored is None else stored[1]


class InMemorySecretVault:
    """The `SecretVault` port over values that wait for the newest key: `stale` of them."""

    def __init__(self, stale: int = 0) -> None:
        self.stale = stale

    async def reencrypt(self, limit: int) -> Reencryption:
        """Encrypt up to `limit` values anew."""
        done = min(limit, self.stale)
        self.stale -= done
        return Reencryption(reencrypted=done, remaining=self.stale)
