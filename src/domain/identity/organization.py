"""Organizations: the tenants, isolated from each other in everything."""

from dataclasses import dataclass
from datetime import datetime

from domain.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A tenant."""

    id: OrganizationId
    name: str
    created_at: datetime
