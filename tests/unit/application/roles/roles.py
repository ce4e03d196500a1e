"""A role in memory, and callers who hold parts of it."""

from dataclasses import replace

from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole
from domain.identity.permission import Permission
from domain.identity.role import Role
from tests.builders import ORG, START
from tests.doubles.state import InMemoryState
from tests.unit.application.actors import a_principal

SUPPORT = CustomRole(
    organization_id=ORG,
    name="support",
    permissions=(Permission.APPROVALS_DECIDE, Permission.RUNS_START),
    created_at=START,
    changed_at=START,
)


def a_holder(*permissions: Permission) -> Principal:
    """A key with a custom role of these permissions."""
    return replace(a_principal(Role.VIEWER), custom_role="lead", granted=frozenset(permissions))


def a_state() -> InMemoryState:
    state = InMemoryState()
    state.custom_roles[ORG, SUPPORT.name] = SUPPORT
    return state
