"""Audit entries in files: read as they were written, or not at all."""

import gzip
import json
from pathlib import Path

import pytest

from application.audit.ports import ArchivedPart
from domain.errors import ErrorKind, ServiceError
from infrastructure.archive.audit_files import AuditFiles
from tests.builders import ORG
from tests.unit.application.audit.test_verify_audit_archive import parts_of

pytestmark = pytest.mark.requirement("K5")


@pytest.fixture
async def part() -> ArchivedPart:
    [part] = await parts_of(3)
    return part


NAME = f"{ORG}/000000000001-000000000003"


async def test_a_part_is_read_as_it_was_written(tmp_path: Path, part: ArchivedPart) -> None:
    files = AuditFiles(tmp_path)
    for _ in range(2):
        await files.store(part)
    assert await files.names() == (NAME,)
    assert await files.read(NAME) == part


async def test_its_files_are_private_lines_and_a_manifest_and_nothing_besides(
    tmp_path: Path, part: ArchivedPart
) -> None:
    await AuditFiles(tmp_path).store(part)
    folder = tmp_path / "audit" / ORG
    assert sorted(path.name for path in folder.iterdir()) == [
        "000000000001-000000000003.json",
        "000000000001-000000000003.ndjson.gz",
    ]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    lines = gzip.decompress((tmp_path / "audit" / f"{NAME}.ndjson.gz").read_bytes()).splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
    manifest = json.loads((tmp_path / "audit" / f"{NAME}.json").read_bytes())
    assert (manifest["first"], manifest["last"], manifest["count"]) == (1, 3, 3)
    assert manifest["last_seal"] == part.links[-1].link.seal


@pytest.mark.parametrize("suffix", [".ndjson.gz", ".json"])
@pytest.mark.parametrize("change", ["gone", "cut", "other"])
async def test_a_file_that_is_not_as_it_was_written_is_not_read(
    tmp_path: Path, part: ArchivedPart, suffix: str, change: str
) -> None:
    files = AuditFiles(tmp_path)
    await files.store(part)
    path = tmp_path / "audit" / f"{NAME}{suffix}"
    if change == "gone":
        path.unlink()
    elif change == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        path.write_bytes(gzip.compress(b"{}\n") if suffix == ".ndjson.gz" else path.read_bytes().replace(b"3", b"4"))
    assert await files.names() == (NAME,)
    assert await files.read(NAME) is None


async def test_a_directory_that_cannot_be_written_fails_the_archive(tmp_path: Path, part: ArchivedPart) -> None:
    (tmp_path / "audit").write_text("in the way", encoding="utf-8")
    with pytest.raises(ServiceError) as failed:
        await AuditFiles(tmp_path).store(part)
    assert (failed.value.code, failed.value.kind) == ("archive_failed", ErrorKind.INTERNAL)
