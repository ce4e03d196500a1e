"""The organization as JSON."""

from typing import TypedDict

from domain.identity.organization import Organization
from domain.threads.message_json import timestamp


class OrganizationView(TypedDict):
    """An organization and its settings."""

    id: str
    name: str
    mcp_enabled: bool
    version: int
    created_at: str


def organization_view(organization: Organization) -> OrganizationView:
    """An organization as JSON."""
    return {
        "id": organization.id,
        "name": organization.name,
        "mcp_enabled": organization.mcp_enabled,
        "version": organization.version,
        "created_at": timestamp(organization.created_at),
    }
