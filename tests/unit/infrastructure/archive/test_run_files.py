"""Runs in files: lines of JSON that say everything, and a manifest that tells whether they are
complete."""

import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from application.retention.ports import ArchivedEntry
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewaySettlement
from domain.runs.events import RunEvent, RunEventType
from domain.tools.result import ToolResult
from infrastructure.archive.run_files import RunFiles
from tests.builders import ORG, RUN, START, THREAD, a_run, a_run_id, a_tool_call
from tests.gateway_builders import ECHO, a_gateway_call
from tests.refusals import refused, storage_away

pytestmark = pytest.mark.requirement("K5")

Part: TypeAlias = Sequence[ArchivedEntry]
EVENT = RunEvent(run_id=RUN, seq=1, type=RunEventType.RUN_QUEUED, at=START, data={"said": "Grüße"})
CALL = replace(a_tool_call(result=ToolResult.succeeded("noon")), input=b"sealed")
ONE: Part = (a_run(), EVENT, CALL)
OTHER: Part = (a_run(a_run_id(2)),)


async def these(*parts: Part) -> AsyncIterator[Part]:
    for part in parts:
        yield part


def files(directory: Path, suffix: str, *, folder: str = "runs") -> list[Path]:
    return sorted((directory / folder / ORG / f"{START:%Y-%m}").glob(f"*{suffix}"))


async def test_a_run_is_a_line_followed_by_lines_of_its_events_and_calls(tmp_path: Path) -> None:
    await RunFiles(tmp_path).store(ORG, THREAD, these(ONE, OTHER))

    [path] = files(tmp_path, ".ndjson.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [list(line) for line in lines] == [["run"], ["event"], ["tool_call"], ["run"]]
    run, event, call, _ = (next(iter(line.values())) for line in lines)
    assert (run["id"], run["thread_id"], run["created_at"]) == (RUN, THREAD, START.isoformat().replace("+00:00", "Z"))
    assert (event["seq"], event["type"], event["data"]) == (1, "run.queued", {"said": "Grüße"})
    assert (call["id"], call["params"], call["result"]["text"]) == (CALL.id, {"text": "hi"}, "noon")
    assert call["input"] is None, "sealed state is of no use without the database"


async def test_gateway_calls_have_their_outcomes_and_those_of_many_threads_a_folder_of_their_own(
    tmp_path: Path,
) -> None:
    refused_call = GatewaySettlement(
        call=a_gateway_call(), result=ToolResult.failed("no_such_file", "It is gone."), duration_ms=7, at=START
    )
    archive = RunFiles(tmp_path)
    await archive.store(ORG, THREAD, these((refused_call,), (a_gateway_call(2),)))
    await archive.store(ORG, None, these((refused_call,)))

    [path], [month] = files(tmp_path, ".ndjson.gz"), files(tmp_path, ".ndjson.gz", folder="gateway_calls")
    settled, is_open = (json.loads(line)["gateway_call"] for line in gzip.decompress(path.read_bytes()).splitlines())
    assert (settled["name"], settled["params"], settled["duration_ms"]) == (ECHO, {"text": "hi"}, 7)
    assert (settled["result"]["outcome"], settled["result"]["text"]) == ("failed", "It is gone.")
    assert settled["settled_at"] == settled["recorded_at"] == START.isoformat().replace("+00:00", "Z")
    assert (is_open["result"], is_open["settled_at"]) == (None, None)
    assert gzip.decompress(month.read_bytes()) == gzip.decompress(path.read_bytes()).splitlines(keepends=True)[0]


async def test_half_an_emoji_of_a_model_does_not_stop_the_archive(tmp_path: Path) -> None:
    half = "\ud83d"
    odd = (replace(EVENT, data={"said": half}), replace(CALL, params={"text": half}))
    await RunFiles(tmp_path).store(ORG, THREAD, these(OTHER, odd))

    [path] = files(tmp_path, ".ndjson.gz")
    _, event, call = (json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())
    assert (event["event"]["data"], call["tool_call"]["params"]) == ({"said": half}, {"text": half})


async def test_a_manifest_counts_and_has_the_digest_of_the_file_and_both_are_private(tmp_path: Path) -> None:
    await RunFiles(tmp_path).store(ORG, THREAD, these(ONE, OTHER))

    [lines], [manifest] = files(tmp_path, ".ndjson.gz"), files(tmp_path, ".json")
    said = json.loads(manifest.read_bytes())
    digest = hashlib.sha256(lines.read_bytes()).hexdigest()
    assert (said["runs"], said["events"], said["tool_calls"], said["sha256"]) == (2, 1, 1, digest)
    assert lines.name == f"{THREAD}-{digest[:16]}.ndjson.gz"
    assert {path.stat().st_mode & 0o777 for path in (lines, manifest)} == {0o600}


async def test_the_same_runs_are_written_once_and_what_is_left_of_them_does_not_replace_them(tmp_path: Path) -> None:
    archive = RunFiles(tmp_path)
    for _ in range(2):
        await archive.store(ORG, THREAD, these(ONE))
    assert len(files(tmp_path, "")) == 2

    await archive.store(ORG, THREAD, these((a_run(), CALL)))
    assert len(files(tmp_path, ".ndjson.gz")) == len(files(tmp_path, ".json")) == 2


async def test_a_thread_without_runs_has_no_file(tmp_path: Path) -> None:
    await RunFiles(tmp_path).store(ORG, THREAD, these())
    assert list(tmp_path.iterdir()) == []


async def test_a_directory_that_is_not_there_is_an_error_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as refused:
        await RunFiles(tmp_path / "not_mounted").store(ORG, THREAD, these(ONE))
    assert (refused.value.code, refused.value.kind) == ("archive_failed", ErrorKind.INTERNAL)
    assert list(tmp_path.iterdir()) == []


async def test_runs_that_cannot_be_read_to_their_end_leave_no_file(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[Part]:
        yield ONE
        assert [path.suffix for path in (tmp_path / "runs" / ".drafts").iterdir()] == [".part"]
        raise storage_away()

    with refused("storage_unavailable"):
        await RunFiles(tmp_path).store(ORG, THREAD, broken())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
