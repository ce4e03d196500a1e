"""TeamChecks: to which group a caller may give something."""

from dataclasses import replace

import pytest

from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.ids import GroupId
from tests.builders import ORG, START
from tests.doubles.state import InMemoryState
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import team_checks

pytestmark = pytest.mark.requirement("P2")
MEMBER = replace(a_principal(Role.OPERATOR), teams=frozenset({"finance"}))


@pytest.fixture
def state() -> InMemoryState:
    """The groups of finance and of the lawyers."""
    state = InMemoryState()
    for name in ("finance", "legal"):
        group = OrganizationGroup(
            id=GroupId(f"grp_{name}"), organization_id=ORG, name=name, created_at=START, changed_at=START
        )
        state.organization_groups[group.id] = group
    return state


async def test_a_member_gives_to_their_own_group_and_to_the_organization(state: InMemoryState) -> None:
    checks = team_checks(state)
    assert await checks.violation(MEMBER, "finance") is None
    assert await checks.violation(MEMBER, None, former="finance") is None


async def test_a_group_of_others_is_refused_like_one_that_does_not_exist(state: InMemoryState) -> None:
    checks = team_checks(state)
    refused = [await checks.violation(MEMBER, name) for name in ("legal", "unknown")]
    assert [None if each is None else each.message.replace("unknown", "legal") for each in refused] == [
        "there is no group 'legal' that you are in"
    ] * 2


async def test_who_sees_every_team_names_any_group_that_exists(state: InMemoryState) -> None:
    checks = team_checks(state)
    assert await checks.violation(a_principal(), "legal") is None
    assert await checks.violation(a_principal(), "unknown") is not None


async def test_a_team_that_stays_is_accepted_also_when_its_group_is_gone(state: InMemoryState) -> None:
    assert await team_checks(state).violation(MEMBER, "gone", former="gone") is None
