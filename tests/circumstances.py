"""Who acts and when, over in-memory tables."""

from application.identity.acting_people import ActingPeople
from application.identity.read_circumstances import ReadCircumstances
from application.system.ports import Clock
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock


def circumstances(state: InMemoryState | None = None, clock: Clock | None = None) -> ReadCircumstances:
    """Without tables nobody is in a group; without a clock it is always `START`."""
    tables = state or InMemoryState()
    people = ActingPeople(memberships=InMemoryOrganizationGroupStore(tables), identities=InMemoryIdentityStore(tables))
    return ReadCircumstances(people=people, clock=clock or FixedClock())
