"""`dragoman session`: browsers signed in to the console, and clients that people admitted at the
gateway."""

from typing import Annotated

import typer

from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.completion import completed
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.sessions.views import EndedSessionsView, SessionView

session_app = typer.Typer(
    help="List and end sessions of browsers and clients.",
    no_args_is_help=True,
    epilog="Example: dragoman session list",
)
_PATH = "sessions"
Holder = Annotated[
    str | None,
    typer.Option("--of", metavar="ID", help="A user or an API key. By default you. Others require the role admin."),
]


@session_app.command("list", epilog="Example: dragoman session list --all")
def list_sessions(
    context: typer.Context,
    holder: Holder = None,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody's. Requires the role admin.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List sessions that have not ended, newest first."""
    if everybody and holder is not None:
        raise BadUsage("Use --of or --all.")
    session_of(context).show_list(
        SessionView,
        path_to(_PATH),
        ("id", "of", "from", "began", "last seen", "expires"),
        lambda session, _: (
            session["id"],
            session["holder"],
            f"{session['actor']} acts: {session['reason']}"
            if session["actor"]
            else session["client_name"] or f"{session['address'] or ''} {session['user_agent'] or ''}".strip(),
            session["created_at"],
            session["last_seen_at"] or "",
            session["expires_at"],
        ),
        query={"holder": "all"} if everybody else {"holder": holder} if holder else None,
        empty="There are no sessions. `dragoman open` begins one in your browser.",
        as_json=as_json,
    )


@session_app.command("end", epilog="Example: dragoman session end ses_0123")
def end_session(
    context: typer.Context,
    session_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The session's id, or its beginning.",
            autocompletion=completed(_PATH, described_by="user_agent"),
        ),
    ],
) -> None:
    """End a session at once."""
    session_of(context).delete(path_to(_PATH, session_id), f"Ended {session_id}.")


@session_app.command("end-all", epilog="Example: dragoman session end-all --of usr_0123")
def end_sessions(context: typer.Context, holder: Holder = None, as_json: JsonFlag = False) -> None:
    """End all sessions of yours at once, or of another caller."""
    session = session_of(context)

    async def end(api: ServiceApi) -> None:
        document = await api.post(path_to(_PATH, "end-all"), {"holder": holder})
        if as_json:
            session.terminal.json(document)
            return
        session.terminal.note(f"Sessions ended: {read_as(EndedSessionsView, document)['ended']}.")

    session.perform(end)
