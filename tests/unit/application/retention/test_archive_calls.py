"""ArchiveCalls: what is written of a month of gateway calls before it is removed."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.audit.ports import Month
from application.retention.archive_calls import ArchiveCalls, ArchiveCallsCommand
from application.retention.ports import ArchivedEntry, MonthlyTables, RemovableCalls, RunArchive
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewaySettlement
from domain.ids import OrganizationId, ThreadId
from domain.tools.result import ToolResult
from tests.builders import ORG, OTHER_ORG, START
from tests.gateway_builders import a_gateway_call
from tests.refusals import refused

pytestmark = pytest.mark.requirement("K5")

MONTH = Month(name="gateway_call_2026_01", ends=START + timedelta(days=30))
COMMAND = ArchiveCallsCommand(month=MONTH, organizations=(ORG, OTHER_ORG))
CALLS = [
    GatewaySettlement(call=a_gateway_call(number), result=ToolResult.succeeded("noon"), duration_ms=7, at=START)
    for number in (1, 2)
]


class Ports:
    """A month with two calls of one organization, each on a page."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.tables: MockType = mocker.create_autospec(MonthlyTables, instance=True)
        self.tables.removable_gateway_calls.return_value = "2:mark"
        self.calls: MockType = mocker.create_autospec(RemovableCalls, instance=True)
        self.calls.of_month.side_effect = self._page
        self.archive: MockType = mocker.create_autospec(RunArchive, instance=True)
        self.archive.store.side_effect = self._store
        self.written: dict[OrganizationId, list[Sequence[ArchivedEntry]]] = {}

    async def execute(self) -> str | None:
        return await ArchiveCalls(archive=self.archive, calls=self.calls, tables=self.tables, page=1).execute(COMMAND)

    async def _page(
        self, organization_id: OrganizationId, month: Month, *, after: object, limit: int
    ) -> tuple[GatewaySettlement, ...]:
        assert (month, limit) == (MONTH, 1)
        place = 0 if after is None else [one.call for one in CALLS].index(after) + 1  # type: ignore[arg-type]
        return tuple(CALLS[place : place + 1]) if organization_id == ORG else ()

    async def _store(
        self, organization_id: OrganizationId, thread_id: ThreadId | None, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        assert thread_id is None
        self.written[organization_id] = [part async for part in parts]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_calls_of_each_organization_are_written_page_by_page_under_the_mark_from_before(ports: Ports) -> None:
    assert await ports.execute() == "2:mark"

    assert ports.written == {ORG: [(CALLS[0],), (CALLS[1],)], OTHER_ORG: []}


async def test_of_a_month_that_stays_nothing_is_written(ports: Ports) -> None:
    ports.tables.removable_gateway_calls.return_value = None

    assert await ports.execute() is None

    ports.archive.store.assert_not_awaited()


async def test_calls_that_cannot_be_written_have_no_mark(ports: Ports) -> None:
    ports.archive.store.side_effect = ServiceError("archive_failed", ErrorKind.INTERNAL, "The disk is full.")

    with refused("archive_failed"):
        await ports.execute()
