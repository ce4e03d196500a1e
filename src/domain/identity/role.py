"""Roles of API keys, each including the one before it."""

from enum import StrEnum


class Role(StrEnum):
    """`viewer` reads; `runner` also makes threads, sources and runs, and stops or resumes those it made; `operator` also
    does so with any run, decides approvals, releases threads, connects servers and opens gateway sessions; `admin` also
    changes what an organization has. Managing organizations is no role: that takes a platform key."""

    VIEWER = "viewer"
    RUNNER = "runner"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether this role may do what `other` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)
