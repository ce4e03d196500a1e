"""`dragoman key`: API keys."""

from typing import Annotated

import typer

from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.shapes import ApiKey, entries_of, read_as

key_app = typer.Typer(
    help="Manage API keys.", no_args_is_help=True, epilog="Example: dragoman key create ci --role runner"
)


@key_app.command("create", epilog="Example: dragoman key create ci --role runner")
def create_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="viewer, runner, operator or admin, each with the one before.")
    ] = "runner",
    as_json: JsonFlag = False,
) -> None:
    """Make a key and print its token, which cannot be had again."""
    session = session_of(context)

    async def create(api: ServiceApi) -> None:
        document = await api.post(path_to("api-keys"), {"name": name, "role": role})
        if as_json:
            session.terminal.json(document)
            return
        key = read_as(ApiKey, document)
        session.terminal.note(f"Created the key {key.id} with the role {key.role}. Its token is shown this once:")
        session.terminal.line(key.token)

    session.perform(create)


@key_app.command("list", epilog="Example: dragoman key list --json")
def list_keys(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List keys, revoked ones too, without their tokens."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        page = await listed(api, path_to("api-keys"))
        if as_json:
            session.terminal.json(page)
            return
        session.terminal.table(
            ("id", "name", "role", "created", "revoked"),
            [
                (
                    key.id,
                    key.name,
                    f"{key.role}, platform" if key.platform else key.role,
                    key.created_at,
                    key.revoked_at or "",
                )
                for key in entries_of(ApiKey, page)
            ],
            empty="There are no keys.",
        )

    session.perform(show)


@key_app.command("revoke", epilog="Example: dragoman key revoke key_0123")
def revoke_key(
    context: typer.Context, key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, key_….")]
) -> None:
    """Make a key useless, at once."""
    session = session_of(context)

    async def revoke(api: ServiceApi) -> None:
        await api.delete(path_to("api-keys", key_id))
        session.terminal.note(f"Revoked {key_id}.")

    session.perform(revoke)
