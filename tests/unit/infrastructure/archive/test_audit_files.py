"""Audit entries in files: read as they were written, or not at all."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from application.audit.ports import ArchivedPart
from application.audit.verify_audit_archive import VerifyAuditArchive
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from infrastructure.archive.audit_files import AuditFiles
from tests.builders import ORG
from tests.unit.application.audit.test_verify_audit_archive import parts_of
from tests.unit.application.audit.trail import KEYS

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
    tmp_path: Path, part: ArchivedPart, suffix: str, change: str, caplog: pytest.LogCaptureFixture
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
    assert [record.exc_info for record in caplog.records if record.exc_info] == [], "no traceback of what is expected"


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"[" * 100_000), gzip.compress(b"[]\n"), gzip.compress(b"1\n")[:10] + b"\xff" * 30],
    ids=["nested", "no entry", "not compressed"],
)
async def test_a_file_with_anything_else_under_its_checksum_is_damaged(
    tmp_path: Path, part: ArchivedPart, content: bytes
) -> None:
    files = AuditFiles(tmp_path)
    await files.store(part)
    (tmp_path / "audit" / f"{NAME}.ndjson.gz").write_bytes(content)
    path = tmp_path / "audit" / f"{NAME}.json"
    manifest = json.loads(path.read_bytes()) | {"sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert await files.read(NAME) is None


async def test_other_entries_with_the_same_numbers_get_a_file_of_their_own(tmp_path: Path, part: ArchivedPart) -> None:
    files = AuditFiles(tmp_path)
    *links, last = part.links
    other = replace(part, links=(*links, replace(last, link=replace(last.link, seal="0" * 64))))
    for one in (part, other, part, other):
        await files.store(one)
    assert [await files.read(name) for name in await files.names()] == [part, other]


async def test_of_two_organizations_with_the_same_numbers_a_damaged_file_of_either_is_found(
    tmp_path: Path, part: ArchivedPart
) -> None:
    files = AuditFiles(tmp_path)
    others = replace(part, organization_id=OrganizationId(f"{ORG}_other"))
    for one in (part, others):
        await files.store(one)
    names = (NAME, NAME.replace(ORG, others.organization_id))
    assert await files.names() == tuple(sorted(names))
    for name in names:
        path = tmp_path / "audit" / f"{name}.ndjson.gz"
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        report = await VerifyAuditArchive(archive=files, keys=await KEYS.all()).execute()
        assert (report.files, report.damaged) == (2, (name,))
        path.write_bytes(whole)


async def test_what_lies_at_the_place_of_a_draft_is_not_written_through(tmp_path: Path, part: ArchivedPart) -> None:
    files = AuditFiles(tmp_path)
    await files.store(part)
    outside = tmp_path / "outside"
    outside.write_text("theirs", encoding="utf-8")
    (tmp_path / "audit" / f"{NAME}.ndjson.gz.part").symlink_to(outside)
    await files.store(part)
    assert outside.read_text(encoding="utf-8") == "theirs"
    assert await files.read(NAME) == part


async def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path, part: ArchivedPart) -> None:
    with pytest.raises(ServiceError) as failed:
        await AuditFiles(tmp_path / "not mounted").store(part)
    assert failed.value.code == "archive_failed"
    assert list(tmp_path.iterdir()) == []


async def test_a_directory_that_cannot_be_written_fails_the_archive(tmp_path: Path, part: ArchivedPart) -> None:
    (tmp_path / "audit").write_text("in the way", encoding="utf-8")
    with pytest.raises(ServiceError) as failed:
        await AuditFiles(tmp_path).store(part)
    assert (failed.value.code, failed.value.kind) == ("archive_failed", ErrorKind.INTERNAL)
