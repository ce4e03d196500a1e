"""VerifyRunArchive: files of the archive are whole, or are named."""

import pytest
from pytest_mock import MockerFixture

from application.retention.ports import ArchivedRuns, CheckedFile, FileState
from application.retention.verify_run_archive import RunArchiveReport, VerifyRunArchive

pytestmark = pytest.mark.requirement("K5")


async def report_of(mocker: MockerFixture, **files: CheckedFile) -> RunArchiveReport:
    archive = mocker.create_autospec(ArchivedRuns, instance=True)
    archive.names.return_value = tuple(files)
    archive.check.side_effect = lambda name: files[name]
    return await VerifyRunArchive(archive=archive).execute()


async def test_numbers_of_whole_files_are_summed(mocker: MockerFixture) -> None:
    report = await report_of(
        mocker, a=CheckedFile(runs=1, events=20, tool_calls=3), b=CheckedFile(runs=2, events=1, gateway_calls=5)
    )

    assert (report.ok, report.files) == (True, 2)
    assert (report.runs, report.events, report.tool_calls, report.gateway_calls) == (3, 21, 3, 5)


@pytest.mark.parametrize("state", [FileState.DAMAGED, FileState.WITHOUT_MANIFEST])
async def test_a_file_that_is_not_whole_is_named_by_what_is_wrong(mocker: MockerFixture, state: FileState) -> None:
    report = await report_of(mocker, a=CheckedFile(runs=1), b=CheckedFile(state=state))

    assert not report.ok
    assert (report.damaged, report.without_manifest) == ((("b",), ()) if state is FileState.DAMAGED else ((), ("b",)))


async def test_an_empty_archive_is_well(mocker: MockerFixture) -> None:
    report = await report_of(mocker)
    assert (report.ok, report.files) == (True, 0)
