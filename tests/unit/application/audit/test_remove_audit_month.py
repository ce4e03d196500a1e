"""RemoveAuditMonth: what of each chain is checked, and what is handed over to be removed with the
month."""

from dataclasses import replace
from datetime import datetime

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import AuditMonths, ExpiredPart, Month
from application.audit.remove_audit_month import RemoveAuditMonth, RemoveAuditMonthCommand
from domain.audit.event import AuditAction
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, after
from tests.doubles.audit_chain import GivenSealKeys, InMemoryAuditChain
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.unit.application.audit.trail import KEYS, a_state_with, add_entries, seal

pytestmark = pytest.mark.requirement("K5", "C5")

MONTH = Month(name="audit_event_2026_01", ends=after(100))
OLD, YOUNG = (after(10), after(20), after(30)), (after(100), after(200))


@pytest.fixture
def months(mocker: MockerFixture) -> MockType:
    port: MockType = mocker.create_autospec(AuditMonths, instance=True)
    port.remove.return_value = True
    return port


async def a_sealed_trail(*moments: datetime) -> InMemoryState:
    state = a_state_with(*moments)
    await seal(state, at=after(300))
    return state


async def remove(
    months: MockType, state: InMemoryState, *organizations: OrganizationId, keys: GivenSealKeys = KEYS
) -> bool:
    """Remove MONTH for these organizations, with two links at a time."""
    removing = RemoveAuditMonth(
        months=months,
        expired=ExpiredChain(chain=InMemoryAuditChain(state), archive=None, batch=2),
        keys=keys,
        clock=FixedClock(after(1_000)),
        ids=SequentialIds(),
    )
    return await removing.execute(RemoveAuditMonthCommand(month=MONTH, organizations=organizations or (ORG,)))


def parts_of(months: MockType) -> dict[OrganizationId, ExpiredPart]:
    """What was handed over, by organization."""
    assert months.remove.await_args.args[0] == MONTH
    return {part.organization_id: part for part in months.remove.await_args.args[1]}


async def test_the_checked_part_of_each_chain_ends_before_the_first_entry_from_after_the_month(
    months: MockType,
) -> None:
    state = await a_sealed_trail(*OLD, *YOUNG)
    add_entries(state, after(40), organization_id=OTHER_ORG)
    await seal(state, at=after(300))

    assert await remove(months, state, ORG, OTHER_ORG)

    parts = parts_of(months)
    assert {one: (part.start, part.last.number) for one, part in parts.items()} == {ORG: (0, 3), OTHER_ORG: (0, 1)}
    audit = parts[ORG].audit
    assert (audit.action, audit.organization_id, audit.at) == (AuditAction.AUDIT_PRUNED, ORG, after(1_000))
    assert audit.details == {"through": 3, "removed": 3, "before": after(100).isoformat()}


async def test_a_chain_with_nothing_old_has_no_part(months: MockType) -> None:
    state = await a_sealed_trail(*YOUNG)

    await remove(months, state, ORG, OTHER_ORG)

    assert parts_of(months) == {}


@pytest.mark.parametrize("change", ["an entry", "the head"])
async def test_the_entries_of_a_chain_that_was_changed_stay(months: MockType, change: str) -> None:
    state = await a_sealed_trail(*OLD, *YOUNG)
    if change == "an entry":
        first = min(state.audit)
        state.audit[first] = replace(state.audit[first], actor="somebody else")
    else:
        state.audit_heads[ORG] = replace(state.audit_heads[ORG], number=4)

    await remove(months, state)

    assert parts_of(months) == {}


async def test_entries_under_an_unknown_key_stay(months: MockType) -> None:
    state = await a_sealed_trail(*OLD, *YOUNG)

    await remove(months, state, keys=GivenSealKeys(b"other" * 8))

    assert parts_of(months) == {}


async def test_a_month_of_which_too_much_would_stay_is_reported_as_not_removed(months: MockType) -> None:
    months.remove.return_value = False
    assert not await remove(months, await a_sealed_trail(*OLD))
