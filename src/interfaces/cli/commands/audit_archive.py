"""`dragoman audit verify --archive`: checking archived audit entries without a service."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

from application.audit.verify_audit_archive import ArchiveReport
from domain.json_value import JsonObject
from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.terminal import Terminal


def verify_archive(terminal: Terminal, directory: Path, *, as_json: bool) -> None:
    """Check all files, and exit 1 if anything is wrong."""
    report = audit_report(directory)
    is_ok = report.ok and report.files > 0
    if as_json:
        terminal.json({**document_of(report), "ok": is_ok})
    else:
        terminal.fields({"checked": f"{report.entries} events in {report.files} files"})
        for line in (*sentences_of(report), *sum_of({"audit entries": report.files}, is_ok=is_ok)):
            terminal.line(line)
    if not is_ok:
        raise typer.Exit(1)


def audit_report(directory: Path) -> ArchiveReport:
    """Checks the entries with the secret keys of the settings. Raises BadUsage without the
    directory, and CommandFailure without the keys: a check makes none, which would hide that they
    are lost."""
    import asyncio

    from infrastructure.container import Container
    from infrastructure.lifecycle import configure_logs, verify_audit_archive
    from interfaces.cli.checked_settings import checked_settings

    if not directory.is_dir():
        raise BadUsage(f"{directory} is not a directory.")
    settings = checked_settings()
    if not settings.secret_keys:
        _require_key_file(settings.home / "secret.key")
    container = Container(settings=settings)
    configure_logs(container, only_trouble=True)
    return asyncio.run(verify_audit_archive(container, directory))


def _require_key_file(path: Path) -> None:
    if not path.exists():
        raise CommandFailure(
            f"{path} is missing. Restore it from the backup, or set DRAGOMAN_SECRET_KEY or DRAGOMAN_HOME as the service has"
            " them: seals are checked with the secret key."
        )


def sentences_of(report: ArchiveReport) -> Iterator[str]:
    for name in report.damaged:
        yield f"{name} is not as it was written."
    for part in report.broken:
        yield f"{part.name}: number {part.first.number} is {part.first.problem.value}."
    for gap in report.missing:
        yield f"{gap.organization_id}: numbers {gap.first} to {gap.last} are in no file."
    if report.unchecked:
        yield (
            f"{report.unchecked} events were sealed with a key that is not known: give the secret key of that time as well"
            " (DRAGOMAN_SECRET_KEY, after a comma), and verify again."
        )
    for one in report.ranges:
        yield f"{one.organization_id}: numbers {one.first} to {one.last}."
        if one.first > 1:
            yield f"  1 to {one.first - 1} are in no file: right only if retention removed them before there was an archive."


def sum_of(files: Mapping[str, int], *, is_ok: bool) -> Iterator[str]:
    """The last sentence, if there is one for it. `files` are their numbers by what they hold."""
    found = [kind for kind, number in files.items() if number]
    if not found:
        yield "There is no file: this is another directory, nothing was archived yet, or all of it is gone."
    elif is_ok:
        yield f"OK: the files are unchanged. They hold {' and '.join(found)}."


def document_of(report: ArchiveReport) -> JsonObject:
    return {
        "ok": report.ok,
        "files": report.files,
        "checked": report.entries,
        "damaged": list(report.damaged),
        "broken": [
            {"file": part.name, "number": part.first.number, "problem": part.first.problem.value}
            for part in report.broken
        ],
        "missing": [
            {"organization_id": gap.organization_id, "first": gap.first, "last": gap.last} for gap in report.missing
        ],
        "unchecked": report.unchecked,
        "ranges": [
            {"organization_id": one.organization_id, "first": one.first, "last": one.last} for one in report.ranges
        ],
    }
