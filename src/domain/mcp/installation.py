"""The installation of an MCP server: what was installed, where and when. Only an uninstallation
removes it."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One finished installation.

    `version` is the exact package version, or a digest of the copied files. `location` is the path
    of the copy below this machine's directory of installed servers. A location is never reused, so
    it identifies the installation. `lock` has the exact versions and hashes of all its packages,
    compressed: other machines install the same by it. None without packages of a registry.
    """

    version: str
    location: str
    installed_at: datetime
    lock: bytes | None = field(default=None, repr=False)
