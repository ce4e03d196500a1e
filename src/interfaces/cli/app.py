"""The command tree, and the mapping of failures to a line on stderr and an exit code."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from domain.errors import ErrorKind, ServiceError
from interfaces.cli.api import ServiceApi
from interfaces.cli.command_table import COMMANDS, Command
from interfaces.cli.failures import BAD_USAGE, FAILED, CommandFailure, with_faults
from interfaces.cli.session import Connect, Session
from interfaces.cli.terminal import Terminal
from interfaces.cli.verbs import verb_meant


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
    DRAGOMAN_API_KEY, or after `dragoman login`), else the service that runs on the data directory
    DRAGOMAN_HOME (default ./.dragoman), else they open that directory themselves."""


def build_app() -> typer.Typer:
    """The complete command line, with every command loaded."""
    app = _root_app(TyperGroup)
    for command in COMMANDS:
        _load(app, command)
    return app


def build_outline() -> typer.Typer:
    """The command line with names and summaries. It loads only the command that is used, because
    loading all takes too long."""

    def nothing() -> None:
        """Placeholder of a command in the outline."""

    app = _root_app(_LoadedOnUse)
    for command in COMMANDS:
        if command.is_group:
            app.add_typer(typer.Typer(), name=command.name, help=command.summary)
        else:
            app.command(command.name, help=command.summary, hidden=command.hidden)(nothing)
    return app


def _root_app(group: type[TyperGroup]) -> typer.Typer:
    app = typer.Typer(
        name="dragoman",
        cls=group,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog='Example: dragoman run "What time is it in Lisbon?" --model openai:gpt-5-mini --server time',
    )
    app.callback()(_root)
    return app


def _load(app: typer.Typer, command: Command) -> None:
    loaded: object = getattr(import_module(f"interfaces.cli.commands.{command.module}"), command.attribute)
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=command.name)
    elif callable(loaded):
        app.command(command.name, epilog=command.epilog, hidden=command.hidden)(loaded)


class _LoadedOnUse(TyperGroup):
    """Replaces a placeholder by its command when it is used or completed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        for entry in COMMANDS:
            if entry.name == name:
                app = _root_app(TyperGroup)
                _load(app, entry)
                loaded = get_command(app)
                command = loaded.commands[name] if isinstance(loaded, TyperGroup) else loaded
        return name, command, rest


def invoke(arguments: Sequence[str], session: Session) -> int:
    """Run one command. Expected failures end as one line on stderr."""
    try:
        code = build_outline()(arguments, prog_name="dragoman", standalone_mode=False, obj=session)
    except CommandFailure as failure:
        session.terminal.note(f"Error: {failure.message}")
        return failure.exit_code
    except ServiceError as error:
        faults = [(violation.path, violation.message) for violation in error.violations]
        session.terminal.note(f"Error: {with_faults(error.detail, faults)}")
        return BAD_USAGE if error.kind is ErrorKind.INVALID else FAILED
    except typer.TyperException as error:
        session.terminal.note(_usage_line(error, arguments))
        return error.exit_code
    return code if isinstance(code, int) else 0


def _usage_line(error: typer.TyperException, arguments: Sequence[str]) -> str:
    message = error.format_message()
    if "\n" in message:
        # Without a command the message is the help.
        return message
    # Usage errors know their command unless the parser found them; typer does not export their
    # type.
    context: Any = getattr(error, "ctx", None)
    path = _named_in(arguments) if context is None else context.command_path
    end = "" if message.endswith("?") else "."
    meant = verb_meant(message, getattr(getattr(context, "command", None), "commands", {}))
    return f"Error: {message.rstrip('.')}{end}{meant} Try `{path} --help`."


def _named_in(arguments: Sequence[str]) -> str:
    """The command that these arguments begin with."""
    known = [entry for entry in COMMANDS if arguments and entry.name == arguments[0]]
    return " ".join(["dragoman", *(entry.name for entry in known)])


def _connecting(terminal: Terminal) -> Connect:
    def connect(*, worker: bool, creates: bool = False) -> AbstractAsyncContextManager[ServiceApi]:
        from interfaces.cli.connecting import connected

        return connected(worker=worker, creates=creates, remark=terminal.note)

    return connect


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model's text may not fit the terminal's encoding.
            stream.reconfigure(errors="replace")
    terminal = Terminal(out=sys.stdout, err=sys.stderr)
    session = Session(terminal=terminal, connect=_connecting(terminal))
    try:
        code = invoke(sys.argv[1:], session)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; discard what is left to flush.
        sys.stdout = io.StringIO()
        code = 0
    sys.exit(code)
