"""The MCP server that people connect their own accounts to, and the page where they do."""

from application.mcp.oauth_client import PublicAddress
from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.mcp.server import Credentials, McpServer

ACCOUNTS_PATH = "/console/accounts"


async def account_server(servers: McpServerStore, principal: Principal, id_or_slug: str) -> McpServer:
    """The server, acting for the principal. Raises FORBIDDEN `person_required`, NOT_FOUND, CONFLICT
    `mcp_server_auth_mismatch`."""
    person_id = principal.require_person()
    server = await existing_server(servers, principal, id_or_slug)
    if server.config.credentials is not Credentials.PERSON:
        raise conflict(
            "mcp_server_auth_mismatch",
            f"The MCP server {server.config.slug!r} is used with an account of the organization.",
        )
    return server.acting_for(person_id)


def account_topic(server: McpServer) -> str:
    """Signalled when the person that the server acts for has connected their account."""
    return f"account:{server.organization_id}:{server.id}:{server.person_id}"


def account_link(address: PublicAddress, server: McpServer) -> str:
    """The page where a person connects their account. Each person who opens it connects their own,
    so others may see it. Without a host while the service has no address."""
    return f"{address.url or ''}{ACCOUNTS_PATH}?server={server.config.slug}"
