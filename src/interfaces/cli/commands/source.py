"""`dragoman source`: files of threads."""

from pathlib import Path
from typing import Annotated

import typer

from domain.sources.source import MAX_SOURCE_BYTES
from interfaces.cli.api import path_to
from interfaces.cli.arguments import THREADS
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.sources.views import SourceView

source_app = typer.Typer(
    help="Manage files of threads.",
    no_args_is_help=True,
    epilog="Example: dragoman source add thr_0123 handbook.pdf",
)

Thread = Annotated[
    str, typer.Argument(metavar="THREAD", help="The thread's id, or its beginning.", autocompletion=THREADS)
]


@source_app.command("add", epilog="Example: dragoman source add thr_0123 handbook.pdf")
def add_source(
    context: typer.Context,
    thread_id: Thread,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file, up to 50 MiB.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Its name. Default: the file's name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a file to a thread."""
    session = session_of(context)
    content = _content_of(file)
    session.show(
        SourceView,
        lambda api: api.upload(path_to("threads", thread_id, "sources"), content, {"name": name or file.name}),
        lambda source: session.terminal.note(
            f"Added {source['name']} as {source['id']}: {source['kind']}, {_searchable(source)}."
        ),
        as_json=as_json,
    )


@source_app.command("list", epilog="Example: dragoman source list thr_0123 --json")
def list_sources(context: typer.Context, thread_id: Thread, as_json: JsonFlag = False) -> None:
    """List the files of a thread, newest first."""
    session_of(context).show_list(
        SourceView,
        path_to("threads", thread_id, "sources"),
        ("id", "name", "kind", "bytes", "search", "added"),
        lambda source, _: (
            source["id"],
            source["name"],
            source["kind"],
            str(source["size"]),
            _searchable(source),
            source["created_at"],
        ),
        empty=f"The thread {thread_id} has no files.",
        as_json=as_json,
    )


@source_app.command("delete", epilog="Example: dragoman source delete src_0123")
def delete_source(
    context: typer.Context, source_id: Annotated[str, typer.Argument(metavar="ID", help="The file's id, src_….")]
) -> None:
    """Delete a file from its thread."""
    session_of(context).delete(path_to("sources", source_id), f"Deleted {source_id}.")


def _content_of(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_SOURCE_BYTES:
            raise BadUsage(f"{file} is larger than {MAX_SOURCE_BYTES // (1024 * 1024)} MiB.")
        return file.read_bytes()
    except OSError as exc:
        raise BadUsage(f"{file} cannot be read: {exc.strerror}.") from exc


def _searchable(source: SourceView) -> str:
    if source["problem"] is not None:
        return source["problem"].rstrip(".")
    return "searchable" if source["searchable"] else "not searchable"
