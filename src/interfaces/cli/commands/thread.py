"""`dragoman thread`: stored conversations."""

from typing import Annotated

import typer

from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.transcript import show_messages
from interfaces.http.threads.views import MessageView, ThreadView

thread_app = typer.Typer(
    help="Read threads, and release them.", no_args_is_help=True, epilog="Example: dragoman thread show thr_0123"
)


@thread_app.callback()
def _threads() -> None:
    """Read threads, and release them from quarantine."""


@thread_app.command("show", epilog="Example: dragoman thread show thr_0123")
def show_thread(
    context: typer.Context,
    thread_id: Annotated[str, typer.Argument(metavar="ID", help="The thread's id, thr_….")],
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


@thread_app.command("release", epilog="Example: dragoman thread release thr_0123")
def release_thread(
    context: typer.Context,
    thread_id: Annotated[str, typer.Argument(metavar="ID", help="The thread's id, thr_….")],
    as_json: JsonFlag = False,
) -> None:
    """Release a thread from quarantine after a canary token halted its run; the next waiting run
    starts."""
    session = session_of(context)

    async def release(api: ServiceApi) -> None:
        thread = await api.post(path_to("threads", thread_id, "release"))
        if as_json:
            session.terminal.json(thread)
            return
        session.terminal.note(f"The thread {thread_id} is released.")

    session.perform(release)
