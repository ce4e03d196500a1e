"""The installation of an MCP server: what was installed, where and when. Only an uninstallation
removes it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One finished installation.

    `version` is the exact package version, or a digest of the copied files. `location` is the path
    of the copy below this machine's directory of installed servers. A location is never reused, so
    it identifies the installation.
    """

    version: str
    location: str
    installed_at: datetime
