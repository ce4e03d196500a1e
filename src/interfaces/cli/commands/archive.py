"""`dragoman archive`: checking the files that retention wrote, without a service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from application.retention.verify_run_archive import RunArchiveReport
from domain.json_value import JsonObject
from interfaces.cli.commands.audit_archive import audit_report, document_of, sentences_of, sum_of
from interfaces.cli.loading import loading
from interfaces.cli.session import JsonFlag, session_of

archive_app = typer.Typer(
    help="Check the files that retention wrote.",
    no_args_is_help=True,
    epilog="Example: dragoman archive verify /var/lib/dragoman-archive",
)


@archive_app.callback()
def _archive() -> None:
    """Check the files that retention wrote."""


@archive_app.command("verify", epilog="Example: dragoman archive verify /var/lib/dragoman-archive && echo untouched")
def verify_archive_files(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory, as DRAGOMAN_ARCHIVE_DIR names it.")],
    as_json: JsonFlag = False,
) -> None:
    """Check archived audit entries, runs and gateway calls. Digests, numbers, order, and the seals
    of audit entries must be as they were written; exits 1 otherwise, and if there is no file. Needs
    the secret key, no service and no database."""
    with loading():
        import asyncio

        from infrastructure.lifecycle import verify_run_archive

    terminal = session_of(context).terminal
    audit = audit_report(directory)
    runs = asyncio.run(verify_run_archive(directory))
    files = {"audit entries": audit.files, "runs or gateway calls": runs.files}
    is_ok = audit.ok and runs.ok and any(files.values())
    if as_json:
        terminal.json({"ok": is_ok, "audit": document_of(audit), "runs": _document(runs)})
    else:
        terminal.fields(
            {
                "audit": f"{audit.entries} events in {audit.files} files",
                "runs": f"{runs.runs} runs with {runs.events} events and {runs.tool_calls} tool calls, and"
                f" {runs.gateway_calls} gateway calls, in {runs.files} files",
            }
        )
        for line in (
            *sentences_of(audit),
            *_sentences(runs),
            *sum_of(files, is_ok=is_ok),
        ):
            terminal.line(line)
    if not is_ok:
        raise typer.Exit(1)


def _sentences(report: RunArchiveReport) -> Iterator[str]:
    for name in report.damaged:
        yield f"{name} is not as it was written."
    for name in report.without_manifest:
        yield (
            f"{name} has no manifest. Either its writer was killed, and its entries are in the database or in another file: then"
            " remove it. Or the manifest was taken away."
        )


def _document(report: RunArchiveReport) -> JsonObject:
    return {
        "ok": report.ok,
        "files": report.files,
        "runs": report.runs,
        "events": report.events,
        "tool_calls": report.tool_calls,
        "gateway_calls": report.gateway_calls,
        "damaged": list(report.damaged),
        "without_manifest": list(report.without_manifest),
    }
