"""Two organizations in memory and the platform's key, for tests of organizations."""

from dataclasses import replace

from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, an_organization
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds
from tests.unit.application.actors import a_principal

PLATFORM = replace(a_principal(), platform=True)
"""A platform key of ORG."""


def a_state_with_organizations() -> InMemoryState:
    """Tables that hold ORG and OTHER_ORG."""
    state = InMemoryState()
    state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
    return state


def fresh_ids() -> SequentialIds:
    """Identifiers that are not those of ORG and OTHER_ORG."""
    ids = SequentialIds()
    for _ in range(2):
        ids.new("org")
    return ids


def trail_of(state: InMemoryState, organization_id: OrganizationId) -> list[AuditEvent]:
    """The organization's audit entries."""
    return [entry for entry in state.audit.values() if entry.organization_id == organization_id]
