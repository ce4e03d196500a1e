"""What each store caches."""

from application.agents.ports import AgentStore
from application.groups.ports import OrganizationGroupStore
from application.identity.ports import ClaimedGroups, ConsoleSessionStore, Memberships, OrganizationStore
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.model_providers.ports import ModelProviderStore
from application.provisioning.ports import GroupStore
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
GROUPS = CachedReads(
    table="group_member",
    reads=(Memberships.groups_of,),
    writes=(
        OrganizationGroupStore.add,
        OrganizationGroupStore.change,
        OrganizationGroupStore.delete,
        ClaimedGroups.set_claimed,
        Memberships.leave_all,
    ),
    capacity=10_000,
)
"""`group_member` stands for the groups and the members of both kinds."""
GROUPS_OF_DIRECTORIES = CachedReads(
    table="group_member",
    reads=(),
    writes=(GroupStore.add_group, GroupStore.change_group, GroupStore.delete_group),
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
