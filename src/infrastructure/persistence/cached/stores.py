"""Stores that keep their newest rows in memory, as long as they would hear of it if others changed them. ADR 0006 and 0015.

Each has a view `anew()` for those who edit: its reads go to the database, its writes empty what is kept.
"""

from collections.abc import Collection, Mapping

from application.agents.ports import AgentName, AgentStore
from application.identity.ports import OrganizationStore
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.model_providers.ports import ModelProviderStore
from application.secrets.ports import SecretStore, SecretUser
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.audit.event import AuditEvent
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import AgentId, McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import PinnedTool, pinned_tool
from domain.mcp.server import McpServer
from domain.model_providers.provider import ModelProvider
from domain.secrets.secret import Secret
from infrastructure.events.row_feed import RowFeed
from infrastructure.persistence.cached.row_cache import Kept, ReadAnew, RowCache

ORGANIZATIONS = 1_000
AGENTS = 1_000
SERVERS = 1_000
SECRETS = 1_000


class CachedAgentStore:
    """`AgentStore` that remembers agents by id and by name."""

    def __init__(
        self, agents: AgentStore, *, feed: RowFeed, kept: Kept[tuple[OrganizationId, str, str], Agent] | None = None
    ) -> None:
        self._agents = agents
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId, str, str], Agent] = kept or RowCache(
            AGENTS, feed=feed, tables=("agent",)
        )

    def anew(self) -> "CachedAgentStore":
        """For those who edit."""
        return CachedAgentStore(self._agents, feed=self._feed, kept=ReadAnew(self._kept))

    async def add(self, agent: Agent, audit: AuditEvent) -> None:
        """Store a new agent."""
        try:
            await self._agents.add(agent, audit)
        finally:
            self._kept.clear(agent.organization_id)

    async def save(self, agent: Agent, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version."""
        try:
            await self._agents.save(agent, expected_version=expected_version, audit=audit)
        finally:
            self._kept.clear(agent.organization_id)

    async def get(self, organization_id: OrganizationId, agent_id: AgentId) -> Agent | None:
        """The newest version."""
        return await self._kept.get(
            (organization_id, "id", agent_id), lambda: self._agents.get(organization_id, agent_id)
        )

    async def find(self, organization_id: OrganizationId, name: str) -> Agent | None:
        """The newest version of the agent of that name."""
        return await self._kept.get((organization_id, "name", name), lambda: self._agents.find(organization_id, name))

    async def names(
        self, organization_id: OrganizationId, agent_ids: Collection[AgentId]
    ) -> Mapping[AgentId, AgentName]:
        """Names, from the database."""
        return await self._agents.names(organization_id, agent_ids)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Agent]:
        """Agents, from the database."""
        return await self._agents.page(organization_id, request)

    async def versions(self, organization_id: OrganizationId, agent_id: AgentId, request: PageRequest) -> Page[Agent]:
        """Versions, from the database."""
        return await self._agents.versions(organization_id, agent_id, request)

    async def delete(self, organization_id: OrganizationId, agent_id: AgentId, audit: AuditEvent) -> bool:
        """Remove the agent from use."""
        try:
            return await self._agents.delete(organization_id, agent_id, audit)
        finally:
            self._kept.clear(organization_id)


class CachedOrganizationStore:
    """`OrganizationStore` that remembers organizations: whether MCP is switched on is asked before every call."""

    def __init__(
        self,
        organizations: OrganizationStore,
        *,
        feed: RowFeed,
        kept: Kept[tuple[OrganizationId], Organization] | None = None,
    ) -> None:
        self._organizations = organizations
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId], Organization] = kept or RowCache(
            ORGANIZATIONS, feed=feed, tables=("organization",)
        )

    def anew(self) -> "CachedOrganizationStore":
        """For those who edit."""
        return CachedOrganizationStore(self._organizations, feed=self._feed, kept=ReadAnew(self._kept))

    async def get(self, organization_id: OrganizationId) -> Organization | None:
        """The organization."""
        key = (organization_id,)
        return self._kept.known(key) or await self._kept.get(key, lambda: self._organizations.get(organization_id))

    async def first(self) -> Organization | None:
        """The one of the first start, from the database."""
        return await self._organizations.first()

    async def page(self, request: PageRequest) -> Page[Organization]:
        """All organizations, from the database."""
        return await self._organizations.page(request)

    async def add(self, organization: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store an organization with its first key."""
        await self._organizations.add(organization, key, audit)

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store a further key."""
        await self._organizations.add_key(key, audit)

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:
        """Store a change."""
        try:
            await self._organizations.save(changed, expected_version=expected_version, audit=audit)
        finally:
            self._kept.clear(changed.id)


class CachedModelProviderStore:
    """`ModelProviderStore` that remembers an organization's providers, decrypted: they are looked at before every model
    call."""

    def __init__(
        self,
        providers: ModelProviderStore,
        *,
        feed: RowFeed,
        kept: Kept[tuple[OrganizationId], tuple[ModelProvider, ...]] | None = None,
    ) -> None:
        self._providers = providers
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId], tuple[ModelProvider, ...]] = kept or RowCache(
            ORGANIZATIONS, feed=feed, tables=("model_provider",)
        )

    def anew(self) -> "CachedModelProviderStore":
        """For those who edit."""
        return CachedModelProviderStore(self._providers, feed=self._feed, kept=ReadAnew(self._kept))

    async def add(self, provider: ModelProvider, audit: AuditEvent) -> None:
        """Store a new provider."""
        try:
            await self._providers.add(provider, audit)
        finally:
            self._kept.drop((provider.organization_id,))

    async def save(self, changed: ModelProvider, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        try:
            await self._providers.save(changed, expected_version=expected_version, audit=audit)
        finally:
            self._kept.drop((changed.organization_id,))

    async def all(self, organization_id: OrganizationId) -> tuple[ModelProvider, ...]:
        """The organization's providers; that there are none is remembered too."""
        found = await self._kept.get((organization_id,), lambda: self._providers.all(organization_id))
        return found or ()

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[ModelProvider]:
        """Providers, from the database."""
        return await self._providers.page(organization_id, request)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove the provider."""
        try:
            return await self._providers.delete(organization_id, name, audit)
        finally:
            self._kept.drop((organization_id,))


class CachedSecretStore:
    """`SecretStore` that remembers values lately needed: a model provider's key may be one, and is sent with every model
    call."""

    def __init__(
        self, secrets: SecretStore, *, feed: RowFeed, kept: Kept[tuple[OrganizationId, str], str] | None = None
    ) -> None:
        self._secrets = secrets
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId, str], str] = kept or RowCache(SECRETS, feed=feed, tables=("secret",))

    def anew(self) -> "CachedSecretStore":
        """For those who edit."""
        return CachedSecretStore(self._secrets, feed=self._feed, kept=ReadAnew(self._kept))

    async def put(self, secret: Secret, value: str, audit: AuditEvent) -> bool:
        """Store a secret, or a new value."""
        try:
            return await self._secrets.put(secret, value, audit)
        finally:
            self._kept.drop((secret.organization_id, secret.name))

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        """Its dates, from the database."""
        return await self._secrets.get(organization_id, name)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        """Secrets, from the database."""
        return await self._secrets.page(organization_id, request)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        """Remove a secret that nothing uses."""
        try:
            return await self._secrets.delete(organization_id, name, audit)
        finally:
            self._kept.drop((organization_id, name))

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        """What names the secret, from the database."""
        return await self._secrets.users(organization_id, name)

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value."""
        return await self._kept.get((organization_id, name), lambda: self._secrets.value(organization_id, name))


class CachedMcpServerStore:
    """`McpServerStore` that remembers servers by id and slug, decrypted."""

    def __init__(
        self, servers: McpServerStore, *, feed: RowFeed, kept: Kept[tuple[OrganizationId, str], McpServer] | None = None
    ) -> None:
        self._servers = servers
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId, str], McpServer] = kept or RowCache(
            SERVERS, feed=feed, tables=("mcp_server",)
        )

    def anew(self) -> "CachedMcpServerStore":
        """For those who edit."""
        return CachedMcpServerStore(self._servers, feed=self._feed, kept=ReadAnew(self._kept))

    async def add(self, server: McpServer, audit: AuditEvent) -> None:
        """Store a new server."""
        try:
            await self._servers.add(server, audit)
        finally:
            self._kept.clear(server.organization_id)

    async def save(self, server: McpServer, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        try:
            await self._servers.save(server, expected_version=expected_version, audit=audit)
        finally:
            self._kept.clear(server.organization_id)

    async def get(self, organization_id: OrganizationId, id_or_slug: str) -> McpServer | None:
        """By id or slug."""
        key = (organization_id, id_or_slug)
        return self._kept.known(key) or await self._kept.get(
            key, lambda: self._servers.get(organization_id, id_or_slug)
        )

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[McpServer]:
        """Servers, from the database."""
        return await self._servers.page(organization_id, request)

    async def is_empty(self) -> bool:
        """Whether no organization has a server, as the database says."""
        return await self._servers.is_empty()

    async def delete(self, organization_id: OrganizationId, server_id: McpServerId, audit: AuditEvent) -> bool:
        """Remove the server."""
        try:
            return await self._servers.delete(organization_id, server_id, audit)
        finally:
            self._kept.clear(organization_id)


class CachedMcpCatalogStore:
    """`McpCatalogStore` that remembers catalogs, so that a run starts without reading a thousand definitions."""

    def __init__(
        self,
        catalogs: McpCatalogStore,
        *,
        feed: RowFeed,
        kept: Kept[tuple[OrganizationId, McpServerId], McpCatalog] | None = None,
    ) -> None:
        self._catalogs = catalogs
        self._feed = feed
        self._kept: Kept[tuple[OrganizationId, McpServerId], McpCatalog] = kept or RowCache(
            SERVERS, feed=feed, tables=("mcp_server_state",)
        )

    def anew(self) -> "CachedMcpCatalogStore":
        """For those who edit."""
        return CachedMcpCatalogStore(self._catalogs, feed=self._feed, kept=ReadAnew(self._kept))

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:
        """The snapshot."""
        key = (organization_id, server_id)
        return self._kept.known(key) or await self._kept.get(
            key, lambda: self._catalogs.load(organization_id, server_id)
        )

    async def tool(self, organization_id: OrganizationId, server_id: McpServerId, name: str) -> PinnedTool | None:
        """One listed tool, from the snapshot."""
        catalog = self._kept.known((organization_id, server_id)) or await self.load(organization_id, server_id)
        return None if catalog is None else pinned_tool(catalog, name)

    async def save(
        self, organization_id: OrganizationId, catalog: McpCatalog, audit: tuple[AuditEvent, ...] = ()
    ) -> bool:
        """Replace the snapshot."""
        try:
            return await self._catalogs.save(organization_id, catalog, audit)
        finally:
            self._kept.drop((organization_id, catalog.server_id))

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Take the tool out of quarantine."""
        try:
            return await self._catalogs.approve(organization_id, server_id, definition, audit)
        finally:
            self._kept.drop((organization_id, server_id))
