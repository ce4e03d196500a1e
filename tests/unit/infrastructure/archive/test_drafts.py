"""Drafts that a killed process left in the archive."""

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from application.retention.ports import ArchivedEntry
from infrastructure.archive.checked_run_files import CheckedRunFiles
from infrastructure.archive.drafts import DraftFiles
from infrastructure.archive.run_files import RunFiles
from tests.builders import ORG, START, THREAD, a_run
from tests.refusals import refused

pytestmark = pytest.mark.requirement("K5")

HOUR = timedelta(hours=1)


def a_draft(directory: Path, *, folder: str = "audit/.drafts", name: str = f"{'0a' * 12}.part") -> Path:
    """A file as a killed process leaves it, last written at START."""
    path = directory / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of it")
    os.utime(path, (START.timestamp(), START.timestamp()))
    return path


async def test_drafts_that_were_not_continued_are_removed_and_others_stay(tmp_path: Path) -> None:
    old, theirs = a_draft(tmp_path), a_draft(tmp_path, name="notes.part")
    drafts = DraftFiles(tmp_path)

    assert await drafts.remove(START) == 0
    assert old.exists()
    assert await drafts.remove(START + HOUR) == 1
    assert (old.exists(), theirs.exists()) == (False, True)


@pytest.mark.parametrize(
    "folder",
    [
        "runs/.drafts",
        "gateway_calls/.drafts",
        "audit/org_1",
        "runs/org_1/2026-01",
        "gateway_calls/org_1/2026-01",
        "drafts",
    ],
)
async def test_drafts_of_each_kind_and_of_earlier_versions_are_removed(tmp_path: Path, folder: str) -> None:
    old = a_draft(tmp_path, folder=folder)
    assert await DraftFiles(tmp_path).remove(START + HOUR) == 1
    assert not old.exists()


async def test_a_draft_that_goes_meanwhile_keeps_no_other_one(tmp_path: Path, mocker: MockerFixture) -> None:
    gone, old = a_draft(tmp_path), a_draft(tmp_path, folder="runs/.drafts")
    mocker.patch.object(
        Path, "rglob", autospec=True, side_effect=lambda folder, _: [gone, old] * (folder.name == "runs")
    )
    gone.unlink()
    assert await DraftFiles(tmp_path).remove(START + HOUR) == 1
    assert not old.exists()


async def test_a_draft_is_in_the_folder_of_its_kind_which_may_be_a_mount(tmp_path: Path) -> None:
    async def parts() -> AsyncIterator[Sequence[ArchivedEntry]]:
        yield (a_run(),)
        assert [path.name for path in tmp_path.iterdir()] == ["runs"]

    await RunFiles(tmp_path).store(ORG, THREAD, parts())
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


async def test_an_archive_without_drafts_or_a_directory_has_none_to_remove(tmp_path: Path) -> None:
    assert await DraftFiles(tmp_path / "not mounted").remove(START) == 0


async def test_what_a_link_points_to_is_not_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs", encoding="utf-8")
    link = a_draft(tmp_path)
    link.unlink()
    link.symlink_to(outside)
    os.utime(link, (0, 0), follow_symlinks=False)

    assert await DraftFiles(tmp_path).remove(START) == 1
    assert outside.read_text(encoding="utf-8") == "theirs"


async def test_a_writer_whose_draft_was_removed_fails_and_writes_it_later(tmp_path: Path) -> None:
    archive, drafts = RunFiles(tmp_path), DraftFiles(tmp_path)
    is_slow = True

    async def parts() -> AsyncIterator[Sequence[ArchivedEntry]]:
        yield (a_run(),)
        if is_slow:
            assert await drafts.remove(datetime.max.replace(tzinfo=UTC)) == 1

    with refused("archive_failed"):
        await archive.store(ORG, THREAD, parts())
    assert await CheckedRunFiles(tmp_path).names() == ()

    is_slow = False
    await archive.store(ORG, THREAD, parts())
    assert len(await CheckedRunFiles(tmp_path).names()) == 1
