"""Ports of the secrets slice: stored secrets, and the keys that everything secret is encrypted with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import McpServerId, OrganizationId, ScheduleId, WorkflowId
from domain.secrets.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUser:
    """What names a secret in its configuration: an MCP server by its slug, a workflow, a model provider, or a schedule
    (whose webhook is signed with it) by its name."""

    name: str
    server_id: McpServerId | None = None
    workflow_id: WorkflowId | None = None
    schedule_id: ScheduleId | None = None


class SecretStore(Protocol):
    """Named secrets; values are encrypted at rest by the adapter and come out through `value` alone."""

    async def put(self, secret: Secret, value: str, audit: AuditEvent) -> bool:
        """Store a new secret, or a new value of one that exists (its `created_at` stays). True if it is new."""
        ...

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        """Its dates."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        """Secrets, newest first."""
        ...

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove a secret that nothing uses. False if there is none. Raises CONFLICT `secret_in_use`, which names the
        users."""
        ...

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        """What names the secret, whether or not it exists: servers by slug, then model providers by name, then workflows,
        then schedules. A run that names it for its webhook does not count: it ends."""
        ...

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value, for the one who needs it to connect."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencryption:
    """What one step did, and how many values still wait for the newest key."""

    reencrypted: int
    remaining: int


class SecretVault(Protocol):
    """Every encrypted value of every organization."""

    async def reencrypt(self, limit: int) -> Reencryption:
        """Encrypt up to `limit` values anew that are not under the newest key. `remaining` is 0 only if no value under
        an older key exists or is on its way. Raises INTERNAL `secret_undecryptable`."""
        ...


class KeyRing(Protocol):
    """The keys that secrets are encrypted with; the newest encrypts, all decrypt."""

    def begin_rotation(self) -> None:
        """See to it that there is a newer key, on disk first, unless an unfinished rotation has made it or keys are
        the operator's. Raises INTERNAL `secret_key_unusable`."""
        ...

    def finish_rotation(self) -> None:
        """Nothing needs the older keys any more: let go of those that are ours. Raises INTERNAL
        `secret_key_unusable`."""
        ...


ForgetServer = Callable[[OrganizationId, McpServerId], Awaitable[None]]
"""Ends the connections of a server once their calls are done."""


def users_in_words(users: tuple[SecretUser, ...]) -> str:
    """The users for a person: `the MCP servers files, mail and the model provider acme`."""
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
