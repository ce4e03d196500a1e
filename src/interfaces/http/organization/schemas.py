"""Body of the organization route."""

from typing import ClassVar, cast

from application.identity.update_organization import OrganizationChanges
from domain.json_value import JsonObject
from interfaces.http.bodies import Patch


class UpdateOrganizationBody(Patch):
    """Changes to the organization; absent fields stay. `mcp_enabled` switches every MCP server off or on, at once."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"mcp_enabled": False},)

    name: str | None = None
    mcp_enabled: bool | None = None

    def to_changes(self) -> OrganizationChanges:
        """The fields named. Raises INVALID."""
        return cast(OrganizationChanges, self.changes())


class CreateOrganizationBody(UpdateOrganizationBody):
    """An organization; settings that are absent are as they are by default."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "Acme"},)

    name: str
