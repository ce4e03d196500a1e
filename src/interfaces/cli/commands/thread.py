"""`dragoman thread`: stored conversations."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import MetadataOption, ThreadArgument
from interfaces.cli.field_values import field_values
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import one_line, short_json
from interfaces.cli.transcript import show_messages
from interfaces.http.threads.views import ListedThreadView, MessageView, ThreadView

_OPENING_LIMIT = 40

thread_app = typer.Typer(help="Manage threads.", no_args_is_help=True, epilog="Example: dragoman thread show thr_0123")


@thread_app.callback()
def _threads() -> None:
    """Manage threads."""


@thread_app.command("list", epilog="Example: dragoman thread list --limit 10")
def list_threads(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most threads to list.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """List threads, newest first."""
    session_of(context).show_list(
        ListedThreadView,
        path_to("threads"),
        ("id", "first words", "created", "quarantine", "metadata"),
        lambda thread, _: (
            thread["id"],
            one_line(thread["opening"] or "", _OPENING_LIMIT),
            thread["created_at"],
            "" if thread["quarantine"] is None else f"since {thread['quarantine']['at']}",
            short_json(dict(thread["metadata"])) if thread["metadata"] else "",
        ),
        limit=limit,
        empty="There are no threads. Create one with `dragoman thread create`; `dragoman run` does so, too.",
        as_json=as_json,
    )


@thread_app.command("create", epilog="Example: dragoman thread create --metadata customer=acme")
def create_thread(
    context: typer.Context,
    metadata: MetadataOption = None,
    team: Annotated[
        str | None,
        typer.Option("--team", metavar="GROUP", help="Group that the thread belongs to; others do not see it."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create an empty thread, and print its id."""
    session = session_of(context)
    body: JsonObject = {"metadata": field_values(metadata, texts=())} if metadata else {}
    if team is not None:
        body["team"] = team
    session.show(
        ThreadView,
        lambda api: api.post(path_to("threads"), body),
        lambda thread: session.terminal.line(thread["id"]),
        as_json=as_json,
        creates=True,
    )


@thread_app.command("delete", epilog="Example: dragoman thread delete thr_0123")
def delete_thread(context: typer.Context, thread_id: ThreadArgument) -> None:
    """Delete a thread with its messages, runs and files."""
    session_of(context).delete(path_to("threads", thread_id), f"Deleted {thread_id}.")


@thread_app.command("show", epilog="Example: dragoman thread show thr_0123")
def show_thread(
    context: typer.Context,
    thread_id: ThreadArgument,
    as_json: JsonFlag = False,
) -> None:
    """Print a thread's messages as a transcript."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        thread = await api.get(path_to("threads", thread_id))
        page = await listed(api, path_to("threads", thread_id, "messages"))
        if as_json:
            session.terminal.json({**thread, "messages": page["data"]})
            return
        quarantine = read_as(ThreadView, thread)["quarantine"]
        if quarantine is not None:
            session.terminal.note(
                f"In quarantine since {quarantine['at']}: run {quarantine['run_id']} was halted by the canary token "
                f"{quarantine['canary_id']}. Release it with `dragoman thread release {thread_id}`."
            )
        messages = entries_of(MessageView, page)
        show_messages(session.terminal, messages)
        if not messages:
            session.terminal.note(f"The thread {thread_id} has no messages.")

    session.perform(show)


@thread_app.command("fork", epilog="Example: dragoman thread fork thr_0123 --before msg_0456")
def fork_thread(
    context: typer.Context,
    thread_id: ThreadArgument,
    before: Annotated[
        str | None,
        typer.Option(
            "--before", metavar="MESSAGE", help="First message that is not copied, one of a user. Default: all."
        ),
    ] = None,
    files: Annotated[bool, typer.Option("--files/--no-files", help="Whether its files are copied, too.")] = True,
    as_json: JsonFlag = False,
) -> None:
    """Create a thread with the messages of another one. Its id is printed. The messages have their
    ids in `thread show --json`."""
    session = session_of(context)
    session.show(
        ThreadView,
        lambda api: api.post(path_to("threads", thread_id, "fork"), {"before_message_id": before, "sources": files}),
        lambda thread: session.terminal.line(thread["id"]),
        as_json=as_json,
        creates=True,
    )


@thread_app.command("release", epilog="Example: dragoman thread release thr_0123")
def release_thread(
    context: typer.Context,
    thread_id: ThreadArgument,
    as_json: JsonFlag = False,
) -> None:
    """Release a thread from quarantine. A canary token halted its run; the next waiting run
    starts."""
    session = session_of(context)

    async def release(api: ServiceApi) -> None:
        thread = await api.post(path_to("threads", thread_id, "release"))
        if as_json:
            session.terminal.json(thread)
            return
        session.terminal.note(f"The thread {thread_id} is released.")

    session.perform(release)
