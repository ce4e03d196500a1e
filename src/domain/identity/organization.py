"""Organizations: the tenants, isolated from each other in everything."""

from dataclasses import dataclass
from datetime import datetime

from domain.errors import Violation, invalid
from domain.ids import OrganizationId

MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A tenant. `version` counts its changes; without `mcp_enabled` no MCP server is asked or called for it."""

    id: OrganizationId
    name: str
    created_at: datetime
    mcp_enabled: bool = True
    version: int = 1

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > MAX_NAME_LENGTH:
            wrong = Violation(path="name", message=f"must be 1 to {MAX_NAME_LENGTH} characters, not all of them blank")
            raise invalid("organization_invalid", "The organization is not valid.", wrong)
