"""A trail of ORG with its seals, for tests of those who seal, check and prune."""

from datetime import datetime

from application.audit.seal_audit import SealAudit
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, an_audit_event, an_organization
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock

KEYS = GivenSealKeys(b"k" * 32)


def a_state_with(*moments: datetime, organization_id: OrganizationId = ORG) -> InMemoryState:
    """In-memory tables that hold two organizations, and entries of these moments, which are not
    sealed."""
    state = InMemoryState()
    state.organizations = {id: an_organization(id) for id in (ORG, OTHER_ORG)}
    add_entries(state, *moments, organization_id=organization_id)
    return state


def add_entries(state: InMemoryState, *moments: datetime, organization_id: OrganizationId = ORG) -> list[AuditEvent]:
    """Further entries, which are not sealed."""
    first = len(state.audit) + 1
    entries = [
        an_audit_event(number, organization_id=organization_id, at=at) for number, at in enumerate(moments, first)
    ]
    state.record(*entries)
    return entries


async def seal(state: InMemoryState, *, at: datetime, keys: GivenSealKeys = KEYS) -> None:
    """Seal what is unsealed."""
    await SealAudit(seals=InMemoryAuditChain(state), keys=keys, clock=FixedClock(at)).sweep()
