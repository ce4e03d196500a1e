"""`dragoman db`: schema and copies of the database."""

from pathlib import Path
from typing import Annotated

import typer

from interfaces.cli.session import JsonFlag, session_of

db_app = typer.Typer(
    help="Upgrade and back up the database.",
    no_args_is_help=True,
    epilog="Example: dragoman db upgrade",
)


@db_app.command("upgrade", epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://owner@db/dragoman dragoman db upgrade")
def upgrade(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Upgrade the database to the schema of this version. `serve` and `worker` also do so at
    start. A separate upgrade can use the owner of the tables, so that the service needs fewer
    rights."""
    from infrastructure.container import Container
    from infrastructure.lifecycle import configure_logs, upgrade_database
    from interfaces.cli.checked_settings import checked_settings

    session = session_of(context)
    container = Container(settings=checked_settings())
    configure_logs(container, only_trouble=True)
    changed = upgrade_database(container)
    if as_json:
        session.terminal.json({"upgraded": changed})
    else:
        session.terminal.line("The database was upgraded." if changed else "The database is up to date.")


@db_app.command("backup", epilog="Example: dragoman db backup /var/backups/dragoman-2026-11-22.db")
def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The target, a file that does not exist yet.", show_default=False)],
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
