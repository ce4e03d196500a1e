"""Built-in roles of API keys and users. Each includes the one before it."""

from enum import StrEnum

from domain.identity.permission import Permission


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

    @property
    def permissions(self) -> frozenset[Permission]:
        return _PERMISSIONS[self]


_RUNNER = frozenset({Permission.RUNS_START})
_OPERATOR = _RUNNER | {
    Permission.RUNS_CONTROL,
    Permission.APPROVALS_DECIDE,
    Permission.THREADS_RELEASE,
    Permission.SERVERS_OPERATE,
    Permission.GATEWAY_OPEN,
    Permission.WEBHOOKS_RETRY,
}
_PERMISSIONS = {
    Role.VIEWER: frozenset[Permission](),
    Role.RUNNER: _RUNNER,
    Role.OPERATOR: _OPERATOR,
    Role.ADMIN: frozenset(Permission),
}
