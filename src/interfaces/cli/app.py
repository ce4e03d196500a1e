"""The command tree, and the mapping of failures to a line on stderr and an exit code."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Annotated

import typer

from domain.errors import ErrorKind, ServiceError
from interfaces.cli.api import ServiceApi
from interfaces.cli.command_table import COMMANDS
from interfaces.cli.failures import BAD_USAGE, FAILED, CommandFailure
from interfaces.cli.session import Session
from interfaces.cli.terminal import Terminal


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dragoman {version('dragoman')}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run LLM agents with native and MCP tools. Commands use the service at DRAGOMAN_URL (with
    DRAGOMAN_API_KEY), else the service that runs on the data directory DRAGOMAN_HOME (default
    ./.dragoman), else they open that directory themselves."""


def build_app(arguments: Sequence[str] | None = None) -> typer.Typer:
    """The command line. It loads only the command that `arguments` name, because loading all
    takes too long. Without `arguments` it is complete; arguments without a command give an
    outline with names and summaries."""
    app = typer.Typer(
        name="dragoman",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog='Example: dragoman run "What time is it in Lisbon?" --model openai:gpt-5-mini --server time',
    )
    app.callback()(_root)
    named = COMMANDS if arguments is None else [command for command in COMMANDS if command.name in arguments]
    first = [command for command in named if arguments and command.name == arguments[0]]
    for command in first or (COMMANDS if named else ()):
        loaded: object = getattr(import_module(f"interfaces.cli.commands.{command.module}"), command.attribute)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=command.name)
        elif callable(loaded):
            app.command(command.name, epilog=command.epilog)(loaded)
    if not named:
        _outline(app)
    return app


def _outline(app: typer.Typer) -> None:
    def nothing() -> None:
        """Placeholder of a command in the outline."""

    for command in COMMANDS:
        if command.is_group:
            app.add_typer(typer.Typer(), name=command.name, help=command.summary)
        else:
            app.command(command.name, help=command.summary)(nothing)


def invoke(arguments: Sequence[str], session: Session) -> int:
    """Run one command. Expected failures end as one line on stderr."""
    try:
        code = build_app(arguments)(arguments, prog_name="dragoman", standalone_mode=False, obj=session)
    except CommandFailure as failure:
        session.terminal.note(f"Error: {failure.message}")
        return failure.exit_code
    except ServiceError as error:
        faults = "; ".join(f"{violation.path} {violation.message}" for violation in error.violations)
        session.terminal.note(f"Error: {error.detail} {faults}".rstrip())
        return BAD_USAGE if error.kind is ErrorKind.INVALID else FAILED
    except typer.TyperException as error:
        session.terminal.note(_usage_line(error))
        return error.exit_code
    return code if isinstance(code, int) else 0


def _usage_line(error: typer.TyperException) -> str:
    message = error.format_message()
    if "\n" in message:
        # Without a command the message is the help.
        return message
    # Usage errors know their command; typer does not export their type.
    path: object = getattr(getattr(error, "ctx", None), "command_path", "dragoman")
    return f"Error: {message.rstrip('.')}. Try `{path} --help`."


def _connect(*, worker: bool) -> AbstractAsyncContextManager[ServiceApi]:
    from interfaces.cli.connecting import connected

    return connected(worker=worker)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model's text may not fit the terminal's encoding.
            stream.reconfigure(errors="replace")
    session = Session(terminal=Terminal(out=sys.stdout, err=sys.stderr), connect=_connect)
    try:
        code = invoke(sys.argv[1:], session)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; discard what is left to flush.
        sys.stdout = io.StringIO()
        code = 0
    sys.exit(code)
