"""Builds what archives audit entries and runs before retention removes them."""

from pathlib import Path

from application.audit.expired_chain import ExpiredChain
from application.audit.ports import AuditArchive
from application.audit.verify_audit_archive import VerifyAuditArchive
from application.retention.archive_thread import ArchiveThread
from application.retention.ports import RunMonths
from application.runs.ports import RunReader
from domain.audit.chain import ChainKeys, chain_key
from infrastructure.archive.audit_files import AuditFiles
from infrastructure.archive.run_files import RunFiles
from infrastructure.persistence.audit.keys import PURPOSE, DerivingBox
from infrastructure.settings import Settings


def audit_archive(settings: Settings) -> AuditArchive | None:
    """None without a directory."""
    return None if settings.archive_dir is None else AuditFiles(settings.archive_dir)


def archiving(settings: Settings, *, expired: ExpiredChain) -> ExpiredChain | None:
    """What prunes the trail reads it twice only where it is archived."""
    return None if settings.archive_dir is None else expired


def archive_thread(settings: Settings, *, reader: RunReader) -> ArchiveThread | None:
    """None without a directory."""
    return (
        None if settings.archive_dir is None else ArchiveThread(archive=RunFiles(settings.archive_dir), reader=reader)
    )


def removable_run_months(settings: Settings, *, run_months: RunMonths) -> RunMonths | None:
    """Runs that are archived go with their threads."""
    return run_months if settings.archive_dir is None else None


def verify_audit_archive(directory: Path, box: DerivingBox) -> VerifyAuditArchive:
    """With the keys of the present secret keys: it needs no database."""
    current, *older = (chain_key(secret) for secret in box.derived(PURPOSE))
    keys = ChainKeys(current=current, known={key.id: key for key in (current, *older)})
    return VerifyAuditArchive(archive=AuditFiles(directory), keys=keys)
