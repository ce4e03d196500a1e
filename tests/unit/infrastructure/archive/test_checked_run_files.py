"""Files with runs and gateway calls are found to be as they were written, or not."""

import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from application.retention.ports import ArchivedEntry, CheckedFile, FileState
from domain.runs.events import RunEvent, RunEventType
from infrastructure.archive.checked_run_files import CheckedRunFiles
from infrastructure.archive.run_files import RunFiles
from tests.builders import ORG, RUN, START, THREAD, a_run, a_run_id, a_tool_call
from tests.gateway_builders import a_gateway_call

pytestmark = pytest.mark.requirement("K5")

EVENTS = [
    RunEvent(run_id=RUN, seq=seq, type=RunEventType.RUN_QUEUED, at=START, data={"said": "\ud83d"}) for seq in (1, 3)
]
ENTRIES: tuple[ArchivedEntry, ...] = (a_run(), *EVENTS, a_tool_call(), a_run(a_run_id(2)), a_gateway_call())


async def these(*entries: ArchivedEntry) -> AsyncIterator[Sequence[ArchivedEntry]]:
    yield entries


async def written(directory: Path, *entries: ArchivedEntry) -> str:
    await RunFiles(directory).store(ORG, THREAD, these(*entries))
    [name] = await CheckedRunFiles(directory).names()
    return name


async def state_of(directory: Path, name: str) -> FileState:
    return (await CheckedRunFiles(directory).check(name)).state


async def test_a_file_is_whole_with_its_numbers(tmp_path: Path) -> None:
    name = await written(tmp_path, *ENTRIES)
    await RunFiles(tmp_path).store(ORG, None, these(a_gateway_call()))

    archive = CheckedRunFiles(tmp_path)
    assert await archive.check(name) == CheckedFile(runs=2, events=2, tool_calls=1, gateway_calls=1)
    calls, runs = await archive.names()
    assert (calls.split("/")[:2], runs) == (["gateway_calls", ORG], name)
    assert await archive.check(calls) == CheckedFile(gateway_calls=1)


@pytest.mark.parametrize("suffix", [".ndjson.gz", ".json"])
@pytest.mark.parametrize("change", ["cut", "longer", "other"])
async def test_a_changed_file_is_damaged_and_logged_without_a_traceback(
    tmp_path: Path, suffix: str, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = await written(tmp_path, *ENTRIES)
    path = tmp_path / f"{name}{suffix}"
    content = path.read_bytes()
    other = gzip.compress(b"{}\n") if suffix == ".ndjson.gz" else content.replace(b'"runs": 2', b'"runs": 3')
    path.write_bytes({"cut": content[:-20], "longer": content + b"{", "other": other}[change])
    assert await state_of(tmp_path, name) is FileState.DAMAGED
    [record] = caplog.records
    assert (record.exc_info, record.__dict__["file"]) == (None, name)
    assert record.__dict__["why"]


async def test_a_file_without_lines_is_damaged_and_one_without_a_manifest_is_named_apart(tmp_path: Path) -> None:
    name = await written(tmp_path, *ENTRIES)
    lines, manifest = (tmp_path / f"{name}{suffix}" for suffix in (".ndjson.gz", ".json"))
    lines.rename(tmp_path / "lines")
    assert await CheckedRunFiles(tmp_path).names() == (name,)
    assert await state_of(tmp_path, name) is FileState.DAMAGED

    (tmp_path / "lines").rename(lines)
    manifest.unlink()
    assert await CheckedRunFiles(tmp_path).names() == (name,)
    assert await state_of(tmp_path, name) is FileState.WITHOUT_MANIFEST


def in_place_of(name: str, directory: Path, content: bytes) -> str:
    """Put lines under a manifest with their digest and size; the name of the file that has both."""
    old = directory / f"{name}.json"
    digest = hashlib.sha256(content).hexdigest()
    said = json.loads(old.read_bytes()) | {"sha256": digest, "bytes": len(content)}
    new = f"{name.rsplit('-', 1)[0]}-{digest[:16]}"
    (directory / f"{new}.ndjson.gz").write_bytes(content)
    (directory / f"{new}.json").write_text(json.dumps(said), encoding="utf-8")
    return new


def moved(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


@pytest.mark.parametrize(
    "change",
    [
        moved,
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [*lines[:3], lines[4], lines[3], lines[5]],
        lambda lines: lines[:-1],
        lambda lines: [*lines, b'{"note": {}}\n'],
        lambda lines: [*lines[:-1], lines[-1].rstrip(b"\n")],
        lambda lines: [*lines[:-1], b"[" * 100_000 + b"\n"],
    ],
    ids=["before its run", "order of events", "call of another run", "fewer", "other kind", "no end", "nested"],
)
async def test_other_lines_under_a_new_digest_are_damaged(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    name = await written(tmp_path, *ENTRIES)
    lines = gzip.decompress((tmp_path / f"{name}.ndjson.gz").read_bytes()).splitlines(keepends=True)
    same = in_place_of(name, tmp_path, gzip.compress(b"".join(lines)))
    assert await state_of(tmp_path, same) is FileState.WHOLE, "the test itself"

    changed = in_place_of(name, tmp_path, gzip.compress(b"".join(change(lines))))
    assert await state_of(tmp_path, changed) is FileState.DAMAGED


async def test_a_file_at_the_place_of_another_one_is_damaged(tmp_path: Path) -> None:
    name = await written(tmp_path, *ENTRIES)
    await RunFiles(tmp_path).store(ORG, THREAD, these(replace(a_run(), last_seq=7)))
    [other] = set(await CheckedRunFiles(tmp_path).names()) - {name}
    for suffix in (".ndjson.gz", ".json"):
        (tmp_path / f"{other}{suffix}").replace(tmp_path / f"{name}{suffix}")
    assert await state_of(tmp_path, name) is FileState.DAMAGED
