"""MaintainMonths: which months go at once, for which organizations, and in which order."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import AuditMonths, Month
from application.audit.remove_audit_month import RemoveAuditMonth, RemoveAuditMonthCommand
from application.retention.archive_calls import ArchiveCalls, ArchiveCallsCommand
from application.retention.maintain_months import MaintainMonths
from application.retention.ports import MonthlyTables, RunMonths
from domain.identity.organization import Organization
from tests.builders import ORG, OTHER_ORG, START, an_organization
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away

pytestmark = pytest.mark.requirement("K5")

NOW = START + timedelta(days=400)
KEEPS_30_DAYS = replace(an_organization(ORG), retention_days=30)
KEEPS_90_DAYS = replace(an_organization(OTHER_ORG), retention_days=90)


def ended(days_ago: int) -> Month:
    return Month(name=f"ended_{days_ago}", ends=NOW - timedelta(days=days_ago))


class Ports:
    """Two organizations, and no month that has ended."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.organizations: tuple[Organization, ...] = (KEEPS_30_DAYS, KEEPS_90_DAYS)
        self.tables: MockType = mocker.create_autospec(MonthlyTables, instance=True)
        self.tables.oldest_of_gateway_calls.return_value = None
        self.tables.remove_gateway_calls.return_value = True
        self.runs_are_archived = False
        self.archive_calls: MockType | None = None
        self.run_months: MockType = mocker.create_autospec(RunMonths, instance=True)
        self.run_months.oldest.return_value = None
        self.run_months.remove.return_value = True
        self.audit_months: MockType = mocker.create_autospec(AuditMonths, instance=True)
        self.audit_months.oldest.return_value = None
        self.remove_audit_month: MockType = mocker.create_autospec(RemoveAuditMonth, instance=True)
        self.remove_audit_month.execute.return_value = True

    async def maintain(self) -> None:
        state = InMemoryState()
        state.organizations = {one.id: one for one in self.organizations}
        await MaintainMonths(
            organizations=InMemoryOrganizationStore(state),
            tables=self.tables,
            run_months=None if self.runs_are_archived else self.run_months,
            audit_months=self.audit_months,
            remove_audit_month=self.remove_audit_month,
            clock=FixedClock(NOW),
            archive_calls=self.archive_calls,
        ).execute()

    def removed(self) -> list[RemoveAuditMonthCommand]:
        return [call.args[0] for call in self.remove_audit_month.execute.await_args_list]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_months_are_added_and_empty_ones_removed_where_none_has_ended(ports: Ports) -> None:
    await ports.maintain()

    ports.tables.add_months.assert_awaited_once()
    ports.tables.remove_empty_months.assert_awaited_once()
    ports.remove_audit_month.execute.assert_not_awaited()
    ports.tables.remove_gateway_calls.assert_not_awaited()


async def test_a_month_goes_for_the_organizations_whose_retention_has_passed_since_its_end(ports: Ports) -> None:
    months = [ended(120), ended(90), ended(30), ended(29)]
    ports.audit_months.oldest.side_effect = months

    await ports.maintain()

    assert ports.removed() == [
        RemoveAuditMonthCommand(month=months[0], organizations=(OTHER_ORG, ORG)),
        RemoveAuditMonthCommand(month=months[1], organizations=(OTHER_ORG, ORG)),
        RemoveAuditMonthCommand(month=months[2], organizations=(ORG,)),
    ]


async def test_gateway_calls_go_likewise(ports: Ports) -> None:
    ports.tables.oldest_of_gateway_calls.side_effect = months = [ended(100), ended(40), None]

    await ports.maintain()

    removed = [call.args for call in ports.tables.remove_gateway_calls.await_args_list]
    assert removed == [(months[0], (OTHER_ORG, ORG)), (months[1], (ORG,))]


async def test_gateway_calls_are_archived_before_their_month_goes_and_only_those_go(
    ports: Ports, mocker: MockerFixture
) -> None:
    ports.tables.oldest_of_gateway_calls.side_effect = [month := ended(100), None]
    ports.archive_calls = mocker.create_autospec(ArchiveCalls, instance=True)
    ports.archive_calls.execute.return_value = "mark"

    await ports.maintain()

    both = (OTHER_ORG, ORG)
    ports.archive_calls.execute.assert_awaited_once_with(ArchiveCallsCommand(month=month, organizations=both))
    ports.tables.remove_gateway_calls.assert_awaited_once_with(month, both, marked="mark")


@pytest.mark.parametrize("outcome", [None, storage_away()])
async def test_a_month_of_gateway_calls_that_was_not_archived_stays(
    ports: Ports, mocker: MockerFixture, outcome: Exception | None
) -> None:
    ports.tables.oldest_of_gateway_calls.return_value = ended(100)
    ports.archive_calls = mocker.create_autospec(ArchiveCalls, instance=True)
    ports.archive_calls.execute.side_effect = [outcome]

    with refused("storage_unavailable") if outcome else nullcontext():
        await ports.maintain()

    ports.tables.remove_gateway_calls.assert_not_awaited()


async def test_events_and_tool_calls_go_likewise_with_the_moment_from_which_on_each_organization_needs_its_threads(
    ports: Ports,
) -> None:
    ports.run_months.oldest.side_effect = months = [ended(100), ended(40), ended(10)]

    await ports.maintain()

    removed = [call.args for call in ports.run_months.remove.await_args_list]
    since_30, since_90 = NOW - timedelta(days=30), NOW - timedelta(days=90)
    assert removed == [(months[0], {ORG: since_30, OTHER_ORG: since_90}), (months[1], {ORG: since_30})]


async def test_no_month_of_runs_goes_at_once_where_runs_are_archived_with_their_threads(ports: Ports) -> None:
    ports.run_months.oldest.return_value = ended(5_000)
    ports.runs_are_archived = True

    await ports.maintain()

    ports.run_months.remove.assert_not_awaited()
    ports.tables.remove_empty_months.assert_awaited_once()


async def test_organizations_that_keep_everything_let_no_month_go(ports: Ports) -> None:
    ports.organizations = (an_organization(ORG),)
    ports.audit_months.oldest.return_value = ports.tables.oldest_of_gateway_calls.return_value = ended(5_000)
    ports.run_months.oldest.return_value = ended(5_000)

    await ports.maintain()

    ports.remove_audit_month.execute.assert_not_awaited()
    ports.tables.remove_gateway_calls.assert_not_awaited()
    ports.run_months.remove.assert_not_awaited()


async def test_no_month_is_removed_while_an_older_one_stays(ports: Ports) -> None:
    ports.audit_months.oldest.return_value = ports.tables.oldest_of_gateway_calls.return_value = ended(200)
    ports.run_months.oldest.return_value = ended(200)
    ports.remove_audit_month.execute.return_value = ports.tables.remove_gateway_calls.return_value = False
    ports.run_months.remove.return_value = False

    await ports.maintain()

    assert (
        len(ports.removed())
        == ports.tables.remove_gateway_calls.await_count
        == ports.run_months.remove.await_count
        == 1
    )


async def test_a_table_in_use_is_reported(ports: Ports) -> None:
    ports.tables.add_months.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.maintain()


async def test_an_error_of_one_step_does_not_stop_the_others(ports: Ports) -> None:
    ports.audit_months.oldest.return_value = ended(120)
    ports.remove_audit_month.execute.side_effect = storage_away()
    ports.tables.oldest_of_gateway_calls.side_effect = [ended(120), None]

    with refused("storage_unavailable"):
        await ports.maintain()

    ports.tables.remove_gateway_calls.assert_awaited_once()
    ports.tables.remove_empty_months.assert_awaited_once()
