"""Ports of the secrets slice: stored secrets, and the encryption keys of all secrets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import McpServerId, OrganizationId, ScheduleId, WorkflowId
from domain.secrets.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUser:
    """A user of a secret: an MCP server by its slug; a workflow, a model provider, or a schedule
    (for the signature of its webhook) by its name."""

    name: str
    server_id: McpServerId | None = None
    workflow_id: WorkflowId | None = None
    schedule_id: ScheduleId | None = None


class SecretStore(Protocol):
    """Named secrets. The adapter encrypts values at rest; only `value` returns them."""

    async def put(self, secret: Secret, value: str, audit: AuditEvent) -> bool:
        """Store a new secret, or a new value of an existing one (its `created_at` stays). True if
        it is new."""

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        """The secret without its value."""

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        """Secrets, newest first."""

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove an unused secret. False if it does not exist. Raises CONFLICT `secret_in_use`,
        which names the users."""

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        """The users of the secret, even if it does not exist: servers by slug, then model providers
        by name, then workflows, then schedules. Runs with a webhook signature are not included,
        because they end."""

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value, to be used for a connection or signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencryption:
    """How many values one step encrypted, and how many remain under older keys."""

    reencrypted: int
    remaining: int


class SecretVault(Protocol):
    """All encrypted values of all organizations."""

    async def reencrypt(self, limit: int) -> Reencryption:
        """Encrypt up to `limit` values that are under an older key with the newest one. `remaining`
        is 0 only if no value under an older key exists or is being written. Raises INTERNAL
        `secret_undecryptable`."""


class KeyRing(Protocol):
    """The encryption keys of secrets: the newest encrypts, all decrypt."""

    def begin_rotation(self) -> None:
        """Create a newer key and store it on disk. Does nothing if an unfinished rotation has done
        so, or if the operator provides the keys. Raises INTERNAL `secret_key_unusable`."""

    def finish_rotation(self) -> None:
        """Remove the older keys, which are no longer needed, unless the operator provides them.
        Raises INTERNAL `secret_key_unusable`."""


ForgetServer = Callable[[OrganizationId, McpServerId], Awaitable[None]]
"""Closes the connections of a server after their calls end."""


def users_in_words(users: tuple[SecretUser, ...]) -> str:
    """The users as text: `the MCP servers files, mail and the model provider acme`."""
    servers = [user.name for user in users if user.server_id is not None]
    workflows = [user.name for user in users if user.workflow_id is not None]
    schedules = [user.name for user in users if user.schedule_id is not None]
    providers = [user.name for user in users if not (user.server_id or user.workflow_id or user.schedule_id)]
    named = [
        f"the {noun}{'' if len(names) == 1 else 's'} {', '.join(names)}"
        for noun, names in (
            ("MCP server", servers),
            ("model provider", providers),
            ("workflow", workflows),
            ("schedule", schedules),
        )
        if names
    ]
    return " and ".join(named)
