"""The tree of commands, and the one place where failures become a line on stderr and an exit code."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated

import typer

from domain.errors import ErrorKind, ServiceError
from interfaces.cli.api import ServiceApi
from interfaces.cli.commands.agent import agent_app
from interfaces.cli.commands.approval import approval_app
from interfaces.cli.commands.audit import audit_app
from interfaces.cli.commands.db import db_app
from interfaces.cli.commands.doctor import doctor
from interfaces.cli.commands.gateway import gateway_app
from interfaces.cli.commands.key import key_app
from interfaces.cli.commands.mcp import mcp_app
from interfaces.cli.commands.org import org_app
from interfaces.cli.commands.provider import provider_app
from interfaces.cli.commands.run import run
from interfaces.cli.commands.runs import run_cancel, run_resume, run_show
from interfaces.cli.commands.schedule import schedule_app
from interfaces.cli.commands.secret import secret_app
from interfaces.cli.commands.serve import serve
from interfaces.cli.commands.source import source_app
from interfaces.cli.commands.thread import thread_app
from interfaces.cli.commands.tool import tool_app
from interfaces.cli.commands.webhook import webhook_app
from interfaces.cli.commands.worker import worker
from interfaces.cli.commands.workflow import workflow_app
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
    """Run LLM agents with native and MCP tools.

    Commands talk to the service at DRAGOMAN_URL (with DRAGOMAN_API_KEY), else to the one that runs on the data directory
    DRAGOMAN_HOME (default ./.dragoman), else open that directory themselves.
    """


def build_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="dragoman",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog='Example: dragoman run "What time is it in Lisbon?" --model openai:gpt-5-mini --server time',
    )
    app.callback()(_root)
    app.command(epilog="Example: dragoman serve")(serve)
    app.command(epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://dragoman@db/dragoman dragoman worker")(worker)
    app.command(epilog='Example: dragoman run "What changed last week?" --agent guide')(run)
    app.command("run-show", epilog="Example: dragoman run-show run_0123 --events")(run_show)
    app.command("run-cancel", epilog="Examples: dragoman run-cancel run_0123; dragoman run-cancel --agent guide")(
        run_cancel
    )
    app.command("run-resume", epilog='Example: dragoman run-resume run_0123 --result call_1="sent"')(run_resume)
    app.add_typer(mcp_app, name="mcp")
    app.add_typer(agent_app, name="agent")
    app.add_typer(tool_app, name="tool")
    app.add_typer(thread_app, name="thread")
    app.add_typer(source_app, name="source")
    app.add_typer(approval_app, name="approval")
    app.add_typer(schedule_app, name="schedule")
    app.add_typer(audit_app, name="audit")
    app.add_typer(org_app, name="org")
    app.add_typer(key_app, name="key")
    app.add_typer(gateway_app, name="gateway")
    app.add_typer(provider_app, name="provider")
    app.add_typer(secret_app, name="secret")
    app.add_typer(webhook_app, name="webhook")
    app.add_typer(workflow_app, name="workflow")
    app.add_typer(db_app, name="db")
    app.command(epilog="Example: dragoman doctor")(doctor)
    return app


def invoke(arguments: Sequence[str], session: Session) -> int:
    """Run one command. Expected failures end as one line on stderr."""
    try:
        code = build_app()(arguments, prog_name="dragoman", standalone_mode=False, obj=session)
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
