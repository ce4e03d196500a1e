"""`dragoman secret`: named secrets, and their encryption key."""

from typing import Annotated

import typer

from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.secrets.views import RotationView, SecretView

secret_app = typer.Typer(
    help="Manage named secrets.",
    no_args_is_help=True,
    epilog="Example: printenv GITHUB_TOKEN | dragoman secret set GITHUB_TOKEN",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help='The secret\'s name; {"secret": NAME} refers to it.')]


@secret_app.command(
    "set",
    epilog="Examples: dragoman secret set GITHUB_TOKEN; printenv GITHUB_TOKEN | dragoman secret set GITHUB_TOKEN",
)
def set_secret(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Store a secret, or a new value of an existing one. The value is prompted for, or read from
    a pipe; it cannot be read back."""
    session = session_of(context)
    value = session.read_secret(f"Value of {name} (not shown): ")
    if not value:
        raise BadUsage(f"The value is empty. Pipe it in: printenv {name} | dragoman secret set {name}")

    async def put(api: ServiceApi) -> None:
        document = await api.post(path_to("secrets"), {"name": name, "value": value})
        session.terminal.note(f"Set {read_as(SecretView, document)['name']}.")
        if as_json:
            session.terminal.json(document)

    session.perform(put, creates=True)


@secret_app.command("list", epilog="Example: dragoman secret list --json")
def list_secrets(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List secrets by name, without their values."""
    session_of(context).show_list(
        SecretView,
        path_to("secrets"),
        ("name", "created", "changed"),
        lambda secret, _: (secret["name"], secret["created_at"], secret["updated_at"]),
        empty="There are no secrets. Store one with `dragoman secret set NAME`.",
        as_json=as_json,
    )


@secret_app.command("delete", epilog="Example: dragoman secret delete GITHUB_TOKEN")
def delete_secret(context: typer.Context, name: Name) -> None:
    """Delete a secret that nothing refers to."""
    session_of(context).delete(path_to("secrets", name), f"Deleted {name}.")


@secret_app.command("rotate", epilog="Example: dragoman secret rotate")
def rotate(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Re-encrypt all secrets. The key is a new one if the key is in HOME/secret.key, else the
    first key of DRAGOMAN_SECRET_KEY. May be interrupted and repeated."""
    session = session_of(context)

    async def step_by_step(api: ServiceApi) -> None:
        total = 0
        while True:
            done = read_as(RotationView, await api.post(path_to("secrets", "rotate")))
            total += done["reencrypted"]
            if done["remaining"] == 0:
                break
            if done["reencrypted"] == 0:
                raise CommandFailure(f"{done['remaining']} values could not be re-encrypted. Try again.")
            session.terminal.note(f"Re-encrypted {total} values, {done['remaining']} remain.")
        if as_json:
            session.terminal.json({"reencrypted": total})
        else:
            session.terminal.note(f"Everything is under the newest key: {total} values were re-encrypted.")

    session.perform(step_by_step)
