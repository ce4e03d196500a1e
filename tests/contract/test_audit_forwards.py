"""The contract of where each organization's chain was sent to."""

import pytest

from application.audit.ports import Unsent
from application.audit.prune_audit import PruneAudit, PruneAuditCommand
from application.audit.seal_audit import SealAudit
from domain.ids import OrganizationId
from infrastructure.runtime.system import RandomIds
from tests.builders import ORG, OTHER_ORG, after, an_audit_event
from tests.contract.stores import Stores
from tests.doubles.audit_chain import GivenSealKeys
from tests.doubles.surroundings import FixedClock

KEYS = GivenSealKeys(b"k" * 32)


async def seal(stores: Stores, *numbers: int, at: float, organization_id: OrganizationId = ORG) -> None:
    """Entries of these numbers, sealed at that second."""
    for number in numbers:
        await stores.audit.record(an_audit_event(number, organization_id=organization_id))
    await SealAudit(seals=stores.audit_seals, keys=KEYS, clock=FixedClock(after(at))).sweep()


async def prune(stores: Stores, before: float) -> None:
    prune = PruneAudit(seals=stores.audit_seals, keys=KEYS, clock=FixedClock(after(90)), ids=RandomIds())
    await prune.execute(PruneAuditCommand(organization_id=ORG, before=after(before)))


def unsent(after_number: int, *, since: float, organization_id: OrganizationId = ORG, lost: int = 0) -> Unsent:
    return Unsent(organization_id=organization_id, after=after_number, since=after(since), lost=lost)


@pytest.mark.requirement("K8")
async def test_a_chain_waits_from_its_first_entry_that_was_not_sent(stores: Stores) -> None:
    await seal(stores, 1, 2, at=60)
    await seal(stores, 3, at=70)
    forwards = stores.audit_forwards
    assert await forwards.unsent(10) == (unsent(0, since=60),)

    await forwards.sent(ORG, 2, after(80))
    assert await forwards.unsent(10) == (unsent(2, since=70),)

    await forwards.sent(ORG, 3, after(80))
    assert await forwards.unsent(10) == ()


@pytest.mark.requirement("K8")
async def test_the_organization_that_waits_longest_comes_first(stores: Stores) -> None:
    await seal(stores, 1, at=70)
    await seal(stores, 2, at=60, organization_id=OTHER_ORG)
    theirs, ours = unsent(0, since=60, organization_id=OTHER_ORG), unsent(0, since=70)

    assert await stores.audit_forwards.unsent(10) == (theirs, ours)
    assert await stores.audit_forwards.unsent(1) == (theirs,)


async def test_an_older_place_does_not_replace_a_newer_one(stores: Stores) -> None:
    await seal(stores, 1, 2, 3, at=60)
    await stores.audit_forwards.sent(ORG, 3, after(80))

    await stores.audit_forwards.sent(ORG, 1, after(81))

    assert await stores.audit_forwards.unsent(10) == ()


@pytest.mark.requirement("K8")
async def test_entries_that_retention_removed_before_they_were_sent_are_counted(stores: Stores) -> None:
    await seal(stores, 1, 2, 3, 4, at=60)
    await stores.audit_forwards.sent(ORG, 1, after(80))

    await prune(stores, before=4)

    assert await stores.audit_forwards.unsent(10) == (unsent(3, since=60, lost=2),)


async def test_nothing_is_lost_of_a_chain_that_was_never_sent(stores: Stores) -> None:
    await seal(stores, 1, 2, 3, at=60)

    await prune(stores, before=3)

    assert await stores.audit_forwards.unsent(10) == (unsent(2, since=60),)
