"""The tree of commands, and the one place where failures become a line on stderr and an exit code."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import typer

from domain.errors import ErrorKind, ServiceError
from interfaces.cli.api import ServiceApi
from interfaces.cli.failures import BAD_USAGE, FAILED, CommandFailure
from interfaces.cli.session import Session
from interfaces.cli.terminal import Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """A command or a group of them: the attribute of `commands/MODULE.py`; a group says its epilog itself."""

    name: str
    module: str
    attribute: str
    epilog: str | None = None


_COMMANDS = (
    _Command(name="serve", module="serve", attribute="serve", epilog="Example: dragoman serve"),
    _Command(
        name="worker",
        module="worker",
        attribute="worker",
        epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://dragoman@db/dragoman dragoman worker",
    ),
    _Command(
        name="run", module="run", attribute="run", epilog='Example: dragoman run "What changed last week?" --agent guide'
    ),
    _Command(
        name="run-show", module="runs", attribute="run_show", epilog="Example: dragoman run-show run_0123 --events"
    ),
    _Command(
        name="run-cancel",
        module="runs",
        attribute="run_cancel",
        epilog="Examples: dragoman run-cancel run_0123; dragoman run-cancel --agent guide",
    ),
    _Command(
        name="run-resume",
        module="runs",
        attribute="run_resume",
        epilog='Example: dragoman run-resume run_0123 --result call_1="sent"',
    ),
    *(
        _Command(name=name, module=name, attribute=f"{name}_app")
        for name in (
            "mcp", "agent", "tool", "thread", "source", "approval", "schedule", "audit", "org", "key", "gateway", "provider",
            "secret", "webhook", "workflow", "db",
        )
    ),
    _Command(name="doctor", module="doctor", attribute="doctor", epilog="Example: dragoman doctor"),
)  # fmt: skip


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
    """Run LLM agents with native and MCP tools.

    Commands talk to the service at DRAGOMAN_URL (with DRAGOMAN_API_KEY), else to the one that runs on the data directory
    DRAGOMAN_HOME (default ./.dragoman), else open that directory themselves.
    """


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command line: if `arguments` begin with a command, that one alone, as the others take as long to load as many a
    command to run; else the whole."""
    app = typer.Typer(
        name="dragoman",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog='Example: dragoman run "What time is it in Lisbon?" --model openai:gpt-5-mini --server time',
    )
    app.callback()(_root)
    asked_for = [command for command in _COMMANDS if command.name in arguments[:1]]
    for command in asked_for or _COMMANDS:
        loaded: object = getattr(import_module(f"interfaces.cli.commands.{command.module}"), command.attribute)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=command.name)
        elif callable(loaded):
            app.command(command.name, epilog=command.epilog)(loaded)
    return app


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
        # No command was given: the message is the help.
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
            # What a model writes need not fit the terminal's encoding.
            stream.reconfigure(errors="replace")
    session = Session(terminal=Terminal(out=sys.stdout, err=sys.stderr), connect=_connect)
    try:
        code = invoke(sys.argv[1:], session)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough of it. What is left to flush goes nowhere.
        sys.stdout = io.StringIO()
        code = 0
    sys.exit(code)
