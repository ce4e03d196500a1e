"""`dragoman db`: schema, copies and size of the database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Protocol

import typer

from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal

db_app = typer.Typer(
    help="Upgrade, back up and shrink the database.",
    no_args_is_help=True,
    epilog="Example: dragoman db upgrade",
)


@db_app.command("upgrade", epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://owner@db/dragoman dragoman db upgrade")
def upgrade(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: say what an upgrade does, and which processes it stops.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Upgrade although running processes cannot work with the new schema.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Upgrade the database to the schema of this version. `serve` and `worker` also do so at
    start. A separate upgrade can use the owner of the tables, so that the service needs fewer
    rights. `--check` ends with status 1 if processes must stop first."""
    from infrastructure.container import Container
    from infrastructure.lifecycle import configure_logs, upgrade_database
    from interfaces.cli.checked_settings import checked_settings

    session = session_of(context)
    container = Container(settings=checked_settings())
    configure_logs(container, only_trouble=True)
    if check:
        _check(session.terminal, container.upgrade_plan(), as_json=as_json)
        return
    changed = upgrade_database(container, despite_running=force)
    if as_json:
        session.terminal.json({"upgraded": changed})
    else:
        session.terminal.line("The database was upgraded." if changed else "The database is up to date.")


class _Plan(Protocol):
    """What an upgrade does, by the revisions of schemas."""

    @property
    def stored(self) -> tuple[str, ...]: ...
    @property
    def pending(self) -> tuple[str, ...]: ...
    @property
    def running(self) -> tuple[str, ...]: ...
    @property
    def must_stop(self) -> tuple[str, ...]: ...
    @property
    def contracts(self) -> bool: ...
    @property
    def target(self) -> str: ...


def _check(terminal: Terminal, plan: _Plan, *, as_json: bool) -> None:
    if as_json:
        terminal.json(
            {
                "from": list(plan.stored),
                "to": plan.target,
                "pending": list(plan.pending),
                "running": list(plan.running),
                "must_stop": list(plan.must_stop),
                "older_code_continues": not plan.contracts,
            }
        )
    else:
        for line in _sentences(plan):
            terminal.line(line)
    if plan.must_stop:
        raise typer.Exit(1)


def _sentences(plan: _Plan) -> Iterator[str]:
    stored = ", ".join(plan.stored)
    if not plan.pending:
        newer = (
            f" The schema has revision {stored} of a newer version, which works with this one."
            if plan.target not in plan.stored
            else ""
        )
        yield f"There is nothing to upgrade.{newer}"
        return
    if not plan.stored:
        yield f"There is no schema yet. An upgrade creates it, with revision {plan.target}."
        return
    yield f"An upgrade changes the schema from revision {stored} to {plan.target}. It applies {', '.join(plan.pending)}."
    if plan.contracts:
        yield f"Processes of revision {stored} do not work with it: let them finish first (`dragoman drain`)."
    else:
        yield f"Processes of revision {stored} continue to work: replace them one after the other."
    if plan.must_stop:
        yield f"Still connected: processes of revision {', '.join(plan.must_stop)}."


@db_app.command("backup", epilog="Example: dragoman db backup /var/backups/dragoman-2026-11-22.db")
def backup(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The target, a file that does not exist yet.", show_default=False)
    ],
    as_json: JsonFlag = False,
) -> None:
    """Copy the SQLite database in its current state. A running service continues. Encrypted
    values need the secret key, which is not copied."""
    from infrastructure.container import Container
    from infrastructure.lifecycle import back_up_database, configure_logs
    from interfaces.cli.checked_settings import checked_settings

    session = session_of(context)
    container = Container(settings=checked_settings())
    configure_logs(container, only_trouble=True)
    size = back_up_database(container, file)
    if as_json:
        session.terminal.json({"file": str(file.absolute()), "bytes": size})
    else:
        session.terminal.line(f"{file.absolute()}: {size} bytes. Keep the secret key as well, elsewhere.")


@db_app.command("vacuum", epilog="Example: dragoman db vacuum")
def vacuum(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Rewrite the SQLite database without the space of removed data. Stop the service first. It
    takes as much disk space again meanwhile. Databases of this version shrink by themselves after
    retention; older ones do so after this command."""
    from infrastructure.container import Container
    from infrastructure.lifecycle import configure_logs, vacuum_database
    from interfaces.cli.checked_settings import checked_settings

    session = session_of(context)
    container = Container(settings=checked_settings())
    configure_logs(container, only_trouble=True)
    before, after = vacuum_database(container)
    if as_json:
        session.terminal.json({"bytes_before": before, "bytes": after})
    else:
        session.terminal.line(f"The database has {after} bytes now; it had {before}.")
