"""Roles of API keys. Each role includes the one before it."""

from enum import StrEnum


class Role(StrEnum):
    """The roles of one organization. Managing organizations needs a platform key, not a role.

    - `viewer` reads.
    - `runner` also creates threads, sources and runs, and cancels or resumes its own runs.
    - `operator` also does so with any run, decides approvals, releases threads, connects servers
      and opens gateway sessions.
    - `admin` also changes the organization's configuration.
    """

    VIEWER = "viewer"
    RUNNER = "runner"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)
