"""ArchiveThread: what is written of a thread before it is removed."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.retention.archive_thread import ArchiveThread
from application.retention.ports import ArchivedEntry, RemovableCalls
from application.runs.ports import RunFilter, RunReader
from application.system.pages import Page, PageRequest
from domain.gateway.call import GatewaySettlement
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent, RunEventType
from domain.tools.result import ToolResult
from tests.builders import ORG, START, THREAD, a_run, a_run_id, a_tool_call
from tests.gateway_builders import a_gateway_call

pytestmark = pytest.mark.requirement("K5", "E7")

RUNS = [replace(a_run(a_run_id(number)), last_seq=number) for number in range(3)]
EVENTS = [
    RunEvent(run_id=RUNS[2].id, seq=seq, type=RunEventType.RUN_QUEUED, at=START, data={"seq": seq}) for seq in (1, 2)
]
CALL = a_tool_call(run_id=RUNS[2].id)


class KeptRuns:
    """An archive that remembers."""

    def __init__(self) -> None:
        self.parts: list[Sequence[ArchivedEntry]] = []

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId | None, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        """Keep them."""
        assert (organization_id, thread_id) == (ORG, THREAD)
        self.parts += [part async for part in parts if part]


@pytest.fixture
def reader(mocker: MockerFixture) -> MockType:
    """Three runs on two pages; the last one has a call, and two events on a page each."""
    reader: MockType = mocker.create_autospec(RunReader, instance=True)
    reader.page.side_effect = [Page(items=tuple(RUNS[:2]), next_cursor="more"), Page(items=tuple(RUNS[2:]))]
    reader.events.side_effect = lambda _, run_id, *, after_seq, limit: tuple(
        [event for event in EVENTS if event.run_id == run_id and event.seq > after_seq][:limit]
    )
    reader.tool_calls.side_effect = lambda _, run_id: (CALL,) if run_id == CALL.run_id else ()
    return reader


@pytest.fixture
def calls(mocker: MockerFixture) -> MockType:
    """No gateway calls."""
    calls: MockType = mocker.create_autospec(RemovableCalls, instance=True)
    calls.of_thread.return_value = ()
    return calls


async def test_all_runs_of_the_thread_are_written_with_all_their_events_and_calls(
    reader: MockType, calls: MockType
) -> None:
    archive = KeptRuns()

    await ArchiveThread(archive=archive, reader=reader, calls=calls, runs=2, events=1).execute(ORG, THREAD)

    assert archive.parts == [(entry,) for entry in (*RUNS, *EVENTS, CALL)]
    asked = [call.args for call in reader.page.await_args_list]
    wanted = RunFilter(thread_id=THREAD)
    assert asked == [(ORG, wanted, PageRequest(limit=2, cursor=cursor)) for cursor in (None, "more")]


async def test_a_run_whose_events_were_removed_in_part_is_written_with_the_rest(
    reader: MockType, calls: MockType
) -> None:
    archive = KeptRuns()
    reader.page.side_effect = [Page(items=(replace(RUNS[2], last_seq=9),))]

    await ArchiveThread(archive=archive, reader=reader, calls=calls).execute(ORG, THREAD)

    assert archive.parts[1:] == [tuple(EVENTS), (CALL,)]


async def test_calls_of_the_threads_gateway_sessions_are_written_page_by_page_behind_its_runs(
    reader: MockType, calls: MockType
) -> None:
    archive = KeptRuns()
    reader.page.side_effect = [Page(items=())]
    settled, is_open = a_gateway_call(1), a_gateway_call(2)
    outcome = GatewaySettlement(call=settled, result=ToolResult.succeeded("noon"), duration_ms=7, at=START)
    calls.of_thread.side_effect = [(outcome,), (is_open,), ()]

    await ArchiveThread(archive=archive, reader=reader, calls=calls, events=1).execute(ORG, THREAD)

    assert archive.parts == [(outcome,), (is_open,)]
    asked = [(call.args, call.kwargs) for call in calls.of_thread.await_args_list]
    assert asked == [((ORG, THREAD), {"after": after, "limit": 1}) for after in (None, settled, is_open)]
