"""GetUsage: the sums of what an organization has used, and who reads them."""

from datetime import date

import pytest
from pytest_mock import MockerFixture

from application.system.pages import PageRequest
from application.usage.ports import UsageFilter, UsageReports
from application.usage.queries import GetUsage
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.runs.usage import ModelSpending
from domain.usage.daily_usage import UsageKey
from tests.builders import AGENT, ORG, START, a_run
from tests.doubles.state import InMemoryState
from tests.doubles.usage import InMemoryUsageStore
from tests.refusals import refused, storage_away
from tests.run_builders import some_usage
from tests.unit.application.actors import a_principal, a_stranger

VIEWER = a_principal(Role.VIEWER)
FIRST, LAST = date(2026, 1, 1), date(2026, 1, 2)


def reports() -> InMemoryUsageStore:
    """Two model calls of an agent that was deleted since, on the first day."""
    state = InMemoryState()
    spending = ModelSpending(model="scripted:demo.yaml", usage=some_usage(100, 20), at=START)
    state.spent = [(a_run(), spending), (a_run(), spending)]
    state.deleted_agents.add(AGENT)
    return InMemoryUsageStore(state)


@pytest.mark.requirement("A10")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_sums_and_deleted_agents_are_in_them(role: Role) -> None:
    page = await GetUsage(reports=reports()).execute(principal=a_principal(role))

    [used] = page.items
    assert (used.day, used.agent_id, used.model_calls, used.input_tokens) == (FIRST, AGENT, 2, 200)


@pytest.mark.requirement("A10")
async def test_sums_are_over_what_they_are_not_grouped_by() -> None:
    by_model = UsageFilter(by=frozenset({UsageKey.MODEL}))

    page = await GetUsage(reports=reports()).execute(principal=VIEWER, wanted=by_model)

    [used] = page.items
    assert (used.day, used.agent_id, used.model) == (None, None, "scripted:demo.yaml")


@pytest.mark.requirement("C6")
async def test_usage_of_another_organization_is_not_in_the_sums() -> None:
    page = await GetUsage(reports=reports()).execute(principal=a_stranger())

    assert page.items == ()


async def test_a_first_day_after_the_last_one_is_refused_and_nothing_is_read(mocker: MockerFixture) -> None:
    unread = mocker.create_autospec(UsageReports, instance=True)
    wanted = UsageFilter(since=LAST, until=FIRST)

    with pytest.raises(ServiceError) as raised:
        await GetUsage(reports=unread).execute(principal=VIEWER, wanted=wanted)

    assert raised.value.code == "usage_days_invalid"
    assert [wrong.path for wrong in raised.value.violations] == ["since"]
    unread.page.assert_not_awaited()


@pytest.mark.parametrize(
    "wanted",
    [UsageFilter(since=FIRST, until=FIRST), UsageFilter(since=LAST), UsageFilter(until=FIRST)],
    ids=["one day", "without an end", "without a beginning"],
)
async def test_one_day_and_open_ends_are_fine(mocker: MockerFixture, wanted: UsageFilter) -> None:
    read = mocker.create_autospec(UsageReports, instance=True)

    await GetUsage(reports=read).execute(principal=VIEWER, wanted=wanted)

    read.page.assert_awaited_once_with(ORG, wanted, PageRequest())


async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture) -> None:
    failing = mocker.create_autospec(UsageReports, instance=True)
    failing.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetUsage(reports=failing).execute(principal=VIEWER)
