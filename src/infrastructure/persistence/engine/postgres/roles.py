"""The two roles that Dragoman acts as on PostgreSQL, and the setting that tells the policies for
which organization. See ADR 0011."""

from typing import Final

from domain.errors import ErrorKind, ServiceError

REQUEST_ROLE: Final = "dragoman_request"
"""Acts for one organization; the policies show it that one's rows."""

SYSTEM_ROLE: Final = "dragoman_system"
"""Role for work that belongs to no organization; row security shows it all rows."""

ORGANIZATION_SETTING: Final = "dragoman.organization_id"


def roles_refused(detail: str) -> ServiceError:
    """The database user cannot do without an administrator what Dragoman needs of it."""
    return ServiceError("database_roles_missing", ErrorKind.UNAVAILABLE, detail)
