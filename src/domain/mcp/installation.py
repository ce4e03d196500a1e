"""What was installed of an MCP server, where and when: a fact that only an uninstallation undoes."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One finished installation.

    `version` is the exact version of the package, or a digest of what was copied. `location` names the copy, relative to
    wherever this machine keeps its installed servers; it is never used twice, so it is also the name of the installation.
    """

    version: str
    location: str
    installed_at: datetime
