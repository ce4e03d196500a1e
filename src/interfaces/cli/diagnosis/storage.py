"""Checks of the database, without the service and without changing anything."""

from collections.abc import Iterator
from typing import Protocol

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, problem, warning, well
from interfaces.cli.loading import loading

CLOCKS_MAY_DIFFER_S = 2.0
"""Workers stop acting on a lease this long before it ends (`LeaseSettings.margin_s`)."""

WORTH_A_VACUUM = 4
"""One byte of so many is free."""

_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")


class Space(Protocol):
    """Of an SQLite file."""

    @property
    def size(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def shrinks(self) -> bool: ...


class Report(Protocol):
    """The state of the database, from `infrastructure.persistence.schema.inspection`."""

    @property
    def name(self) -> str: ...
    @property
    def is_there(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def expected(self) -> str: ...
    @property
    def oldest(self) -> str: ...
    @property
    def is_older(self) -> bool: ...
    @property
    def is_compatible(self) -> bool: ...
    @property
    def queue_is_current(self) -> bool: ...
    @property
    def clock_ahead_s(self) -> float | None: ...
    @property
    def damage(self) -> str | None: ...
    @property
    def space(self) -> Space | None: ...


def look_at_database(settings: Settings) -> Report:
    with loading():
        from infrastructure.container import Container
    return Container(settings=settings).database_inspection().look()


def can_be_opened(report: Report) -> bool:
    """Whether opening it is safe and worthwhile."""
    if not report.is_there:
        return True
    suits = report.is_compatible or report.revision == report.expected
    return report.failure is None and suits and report.queue_is_current


def database_findings(report: Report) -> Iterator[Finding]:
    """Findings about the database, its schema, and its clock."""
    if not report.is_there:
        yield well("database", f"{report.name} does not exist yet; the first start creates it")
        return
    if report.failure is not None:
        yield problem("database", f"{report.name}: {report.failure}", _advice(report.name, report.failure))
        return
    if report.damage is not None:
        yield problem(
            "database", f"{report.name} is damaged: {report.damage}", "Restore a backup (docs/guides/backup.md)."
        )
    else:
        yield well("database", f"{report.name} can be read")
    yield _schema_finding(report)
    if report.space is not None and not report.space.shrinks and report.space.free * WORTH_A_VACUUM > report.space.size:
        yield space_finding(report.space)
    if report.clock_ahead_s is not None:
        yield clock_finding(report.clock_ahead_s)


def _advice(name: str, failure: str) -> str:
    """Restoring is for damaged files, not for locked or unreadable ones."""
    if name.startswith("PostgreSQL"):
        return "Check DRAGOMAN_DATABASE_URL, and that the server runs and takes connections from this machine."
    if any(code in failure for code in _DAMAGED):
        return "Restore a backup (docs/guides/backup.md)."
    return "Check that this user may read the file, and that no other program holds it locked; then look again."


def clock_finding(ahead_s: float) -> Finding:
    """Leases and timers are compared across machines."""
    differ = f"differs from the database server's by {abs(ahead_s):.1f} s"
    if abs(ahead_s) > CLOCKS_MAY_DIFFER_S:
        return problem("clock", f"this machine's {differ}", "Synchronize both (chrony, systemd-timesyncd).")
    return well("clock", f"this machine's {differ}")


def space_finding(space: Space) -> Finding:
    """A file of an older version does not get smaller by itself."""
    return warning(
        "space",
        f"{space.free} of the database's {space.size} bytes are free, and the file does not get smaller",
        "Stop the service and run `dragoman db vacuum` once: from then on it does.",
    )


def _schema_finding(report: Report) -> Finding:
    backup_and = "Back up (docs/guides/backup.md), then run `dragoman db upgrade`; the next start does it, too."
    if report.revision == report.expected:
        if report.queue_is_current:
            return well("schema", f"revision {report.revision}, which this version has")
        return warning("schema", "the run queue's is missing or of another version", backup_and)
    if report.is_compatible:
        return well("schema", f"revision {report.revision} of a newer version, which works with this one")
    if report.revision is None:
        return warning("schema", "there is none yet", "`dragoman db upgrade` creates it; so does the first start.")
    if report.revision < report.oldest:
        return problem(
            "schema",
            f"revision {report.revision}; this version upgrades from {report.oldest} on",
            f"Upgrade it first with a version that has revision {report.oldest} and the ones before (docs/guides/upgrade.md).",
        )
    if report.is_older:
        return warning("schema", f"revision {report.revision}, this version has {report.expected}", backup_and)
    return problem(
        "schema",
        f"revision {report.revision} of a newer version; this one has {report.expected}",
        "Install the newer version, or restore the backup from before its upgrade: there is no way down.",
    )
