"""Builds what archives audit entries, runs and gateway calls before retention removes them, and
what checks the archive."""

from pathlib import Path

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import AuditArchive
from application.audit.verify_audit_archive import VerifyAuditArchive
from application.retention.archive_calls import ArchiveCalls
from application.retention.archive_thread import ArchiveThread
from application.retention.ports import ArchiveDrafts, MonthlyTables, RemovableCalls, RunMonths
from application.retention.verify_run_archive import VerifyRunArchive
from application.runs.ports import RunReader
from domain.audit.chain import ChainKeys, chain_key
from infrastructure.archive.audit_files import AuditFiles
from infrastructure.archive.checked_run_files import CheckedRunFiles
from infrastructure.archive.drafts import DraftFiles
from infrastructure.archive.run_files import RunFiles
from infrastructure.persistence.audit.keys import PURPOSE, DerivingBox
from infrastructure.settings import Settings


def audit_archive(settings: Settings) -> AuditArchive | None:
    """None without a directory."""
    return None if settings.archive_dir is None else AuditFiles(settings.archive_dir)


def archiving(settings: Settings, *, expired: ExpiredChain) -> ExpiredChain | None:
    """What prunes the trail reads it twice only where it is archived."""
    return None if settings.archive_dir is None else expired


def archive_thread(settings: Settings, *, reader: RunReader, calls: RemovableCalls) -> ArchiveThread | None:
    """None without a directory."""
    if settings.archive_dir is None:
        return None
    return ArchiveThread(archive=RunFiles(settings.archive_dir), reader=reader, calls=calls)


def archive_calls(settings: Settings, *, calls: RemovableCalls, tables: MonthlyTables) -> ArchiveCalls | None:
    """None without a directory."""
    if settings.archive_dir is None:
        return None
    return ArchiveCalls(archive=RunFiles(settings.archive_dir), calls=calls, tables=tables)


def drafts(settings: Settings) -> ArchiveDrafts | None:
    """None without a directory."""
    return None if settings.archive_dir is None else DraftFiles(settings.archive_dir)


def removable_run_months(settings: Settings, *, run_months: RunMonths) -> RunMonths | None:
    """Runs that are archived go with their threads."""
    return run_months if settings.archive_dir is None else None


def verify_audit_archive(directory: Path, box: DerivingBox) -> VerifyAuditArchive:
    """With the keys of the present secret keys: it needs no database."""
    current, *older = (chain_key(secret) for secret in box.derived(PURPOSE))
    keys = ChainKeys(current=current, known={key.id: key for key in (current, *older)})
    return VerifyAuditArchive(archive=AuditFiles(directory), keys=keys)


def verify_run_archive(directory: Path) -> VerifyRunArchive:
    """It needs neither keys nor a database."""
    return VerifyRunArchive(archive=CheckedRunFiles(directory))
