"""What has a name in an organization, for the palette: where each kind is listed, and the page of
each."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from application.agents.queries import ListAgents
from application.groups.queries import ListGroups
from application.identity.queries import ListApiKeys, ListIdentityProviders, ListOrganizations, ListUsers
from application.mcp.queries import ListMcpServers
from application.model_providers.queries import ListModelProviders
from application.roles.queries import ListCustomRoles
from application.schedules.queries import ListSchedules
from application.secrets.queries import ListSecrets
from application.system.lru import LruCache
from application.system.pages import MAX_PAGE_SIZE, Page, PageRequest
from application.system.ports import Clock
from application.workflows.queries import ListWorkflows
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from interfaces.console_paths import PATH

MOST_PAGES = 4
"""Of each kind, of 500 each, newest first."""
KEPT_S = 5.0
_MOST_KEPT = 100_000
"""Entries of all callers together."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`keys` lead there, too."""

    kind: str
    name: str
    link: str
    keys: str = ""


class Named:
    """Rules:
    - It has what the caller may open; of agents, MCP servers and others the newest 2,000 of each.
    - What was read is kept for some seconds, so that a name is read once while it is typed.
    """

    def __init__(
        self,
        *,
        list_agents: ListAgents,
        list_mcp_servers: ListMcpServers,
        list_workflows: ListWorkflows,
        list_schedules: ListSchedules,
        list_users: ListUsers,
        list_groups: ListGroups,
        list_custom_roles: ListCustomRoles,
        list_api_keys: ListApiKeys,
        list_secrets: ListSecrets,
        list_model_providers: ListModelProviders,
        list_identity_providers: ListIdentityProviders,
        list_organizations: ListOrganizations,
        clock: Clock,
    ) -> None:
        self._agents = list_agents
        self._servers = list_mcp_servers
        self._workflows = list_workflows
        self._schedules = list_schedules
        self._users = list_users
        self._groups = list_groups
        self._roles = list_custom_roles
        self._keys = list_api_keys
        self._secrets = list_secrets
        self._model_providers = list_model_providers
        self._identity_providers = list_identity_providers
        self._organizations = list_organizations
        self._clock = clock
        self._kept: LruCache[Principal, tuple[float, tuple[Entry, ...]]] = LruCache(
            _MOST_KEPT, weight=lambda kept: 1 + len(kept[1])
        )

    async def of(self, principal: Principal) -> tuple[Entry, ...]:
        """By kind, newest first, as it was up to `KEPT_S` ago."""
        kept = self._kept.get(principal)
        if kept is not None and self._clock.monotonic() - kept[0] < KEPT_S:
            return kept[1]
        began = self._clock.monotonic()
        kinds = await asyncio.gather(self._built(principal), self._governed(principal), self._of_admins(principal))
        entries = tuple(entry for kind in kinds for entry in kind)
        self._kept.put(principal, (began, entries))
        return entries

    async def _built(self, principal: Principal) -> list[Entry]:
        agents = await _newest(lambda page: self._agents.execute(principal=principal, page=page))
        servers = await _newest(lambda page: self._servers.execute(principal=principal, page=page))
        workflows = await _newest(lambda page: self._workflows.execute(principal=principal, page=page))
        schedules = await _newest(lambda page: self._schedules.execute(principal, page))
        may_edit = principal.may(Permission.SCHEDULES_MANAGE)
        return [
            *(_of("Agent", each.config.name, f"agents/{each.id}") for each in agents),
            *(_of("MCP server", each.config.slug, f"servers/{each.config.slug}") for each in servers),
            *(_of("Workflow", each.definition.name, f"workflows/{each.id}") for each in workflows),
            *(_of("Schedule", each.name, f"schedules/{each.id}" if may_edit else "schedules") for each in schedules),
        ]

    async def _governed(self, principal: Principal) -> list[Entry]:
        found: list[Entry] = []
        if principal.may(Permission.USERS_MANAGE):
            users = await _newest(lambda page: self._users.execute(principal, page))
            found += (_of("User", each.name or each.email or each.subject, "people") for each in users)
            roles = await self._roles.execute(principal)
            found += (_of("Role", each.name, "people/roles") for each in roles)
        if principal.may(Permission.GROUPS_MANAGE):
            groups = await self._groups.execute(principal)
            found += (_of("Group", each.name, f"people/groups/{each.id}") for each in groups)
        if principal.may(Permission.KEYS_MANAGE):
            keys = await _newest(lambda page: self._keys.execute(principal, page))
            found += (_of("API key", each.name, "keys") for each in keys if each.revoked_at is None)
        return found

    async def _of_admins(self, principal: Principal) -> list[Entry]:
        found: list[Entry] = []
        if principal.may(Permission.SECRETS_MANAGE):
            secrets = await _newest(lambda page: self._secrets.execute(principal, page))
            found += (_of("Secret", each.name, "secrets") for each in secrets)
            models = await _newest(lambda page: self._model_providers.execute(principal, page))
            found += (_of("Model provider", each.name, f"settings/model-providers/{each.name}") for each in models)
        if principal.may(Role.ADMIN):
            for each in await self._identity_providers.execute(principal):
                found.append(_of("Identity provider", each.name, f"settings/identity-providers/{each.id}"))
            if principal.platform:
                many = await _newest(lambda page: self._organizations.execute(principal, page))
                found += (_of("Organization", each.name, f"settings/organizations/{each.id}") for each in many)
        return found


def _of(kind: str, name: str, below: str) -> Entry:
    return Entry(kind=kind, name=name, link=f"{PATH}/{below}")


async def _newest(page: Callable[[PageRequest], Awaitable[Page[_Item]]]) -> list[_Item]:
    found: list[_Item] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        one = await page(PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
        found += one.items
        if (cursor := one.next_cursor) is None:
            break
    return found
