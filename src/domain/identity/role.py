"""Roles of API keys, each including the one before it."""

from enum import StrEnum


class Role(StrEnum):
    """`viewer` reads; `runner` also starts runs; `operator` also cancels any run and connects servers; `admin`
    changes all."""

    VIEWER = "viewer"
    RUNNER = "runner"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether this role may do what `other` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)
