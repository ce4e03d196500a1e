"""What each store caches."""

from application.agents.ports import AgentStore
from application.identity.ports import ConsoleSessionStore, OrganizationStore
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.model_providers.ports import ModelProviderStore
from application.secrets.ports import SecretStore
from infrastructure.persistence.cached.read_through import CachedReads

AGENTS = CachedReads(
    table="agent",
    reads=(AgentStore.get, AgentStore.find),
    writes=(AgentStore.add, AgentStore.save, AgentStore.delete),
)
ORGANIZATIONS = CachedReads(table="organization", reads=(OrganizationStore.get,), writes=(OrganizationStore.save,))
CONSOLE_SESSIONS = CachedReads(
    table="console_session",
    reads=(ConsoleSessionStore.get,),
    writes=(ConsoleSessionStore.add, ConsoleSessionStore.end),
)
MODEL_PROVIDERS = CachedReads(
    table="model_provider",
    reads=(ModelProviderStore.all,),
    writes=(ModelProviderStore.add, ModelProviderStore.save, ModelProviderStore.delete),
)
SECRETS = CachedReads(table="secret", reads=(SecretStore.value,), writes=(SecretStore.put, SecretStore.delete))
PERSON_SECRETS = CachedReads(
    table="person_grant",
    reads=(PersonSecretStore.load,),
    writes=(PersonSecretStore.save, PersonSecretStore.remove),
    capacity=10_000,
    # People who are not active have no secrets. This process tells of them as of keys.
    also=("user_account", "identity_provider", "api_key"),
)
MCP_SERVERS = CachedReads(
    table="mcp_server",
    reads=(McpServerStore.get,),
    writes=(McpServerStore.add, McpServerStore.save, McpServerStore.delete),
)
MCP_CATALOGS = CachedReads(
    table="mcp_server_state",
    reads=(McpCatalogStore.load,),
    writes=(McpCatalogStore.save, McpCatalogStore.approve, McpCatalogStore.reject),
)
