"""`dragoman role`: roles and their permissions."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.completion import completed
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.roles.views import RoleList, RoleView

role_app = typer.Typer(
    help="Manage custom roles.",
    no_args_is_help=True,
    epilog="Example: dragoman role create approver --permission approvals.decide",
)
_PATH = "roles"
Role = Annotated[
    str,
    typer.Argument(
        metavar="ROLE",
        help="Name of a custom role.",
        autocompletion=completed("roles", "name", described_by="description"),
    ),
]
Permissions = Annotated[
    list[str] | None,
    typer.Option("--permission", metavar="PERMISSION", help="What the role permits, besides reading. May be repeated."),
]
Description = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What the role is for.")]


@role_app.command("list", epilog="Example: dragoman role list")
def list_roles(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List roles, custom and built-in ones."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to(_PATH))
        if as_json:
            session.terminal.json(document)
            return
        found = read_as(RoleList, document)
        rows = [(role["name"], "custom", ", ".join(role["permissions"])) for role in found["data"]]
        rows += [(role["name"], "built-in", ", ".join(role["permissions"])) for role in found["built_in"]]
        session.terminal.table(("name", "kind", "permissions"), rows, empty="")

    session.perform(show)


@role_app.command("permissions", epilog="Example: dragoman role permissions")
def list_permissions(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the permissions that roles can have."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to(_PATH))
        if as_json:
            session.terminal.json(document["permissions"])
            return
        rows = [(each["name"], each["description"]) for each in read_as(RoleList, document)["permissions"]]
        session.terminal.table(("permission", "what it permits"), rows, empty="")

    session.perform(show)


@role_app.command("show", epilog="Example: dragoman role show approver")
def show_role(context: typer.Context, role: Role, as_json: JsonFlag = False) -> None:
    """Show a custom role."""
    session = session_of(context)

    def display(found: RoleView) -> None:
        session.terminal.line(f"{found['name']}: {found['description']}" if found["description"] else found["name"])
        for permission in found["permissions"]:
            session.terminal.line(f"permission: {permission}")

    session.show(RoleView, lambda api: api.get(path_to(_PATH, role)), display, as_json=as_json)


@role_app.command("create", epilog="Example: dragoman role create approver --permission approvals.decide")
def create_role(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the role, which stays.")],
    permission: Permissions = None,
    description: Description = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a custom role. Its holders read everything, and have the permissions."""
    session = session_of(context)
    body: JsonObject = {"name": name, "permissions": [*(permission or ())], "description": description or ""}
    session.show(
        RoleView,
        lambda api: api.post(path_to(_PATH), body),
        lambda created: session.terminal.note(f"Created the role {created['name']}."),
        as_json=as_json,
        creates=True,
    )


@role_app.command("set", epilog="Example: dragoman role set approver --permission approvals.decide")
def change_role(
    *,
    context: typer.Context,
    role: Role,
    permission: Permissions = None,
    no_permissions: Annotated[bool, typer.Option("--no-permissions", help="The role only reads.")] = False,
    description: Description = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a custom role, at once for all who have it. New permissions replace all earlier
    ones."""
    session = session_of(context)
    if permission and no_permissions:
        raise BadUsage("Give --permission or --no-permissions, not both.")
    body: JsonObject = {} if description is None else {"description": description}
    if permission or no_permissions:
        body["permissions"] = [*(permission or ())]
    if not body:
        raise BadUsage("Nothing to change: give --permission, --no-permissions or --description.")
    session.show(
        RoleView,
        lambda api: api.patch(path_to(_PATH, role), body),
        lambda changed: session.terminal.note(f"Changed the role {changed['name']}."),
        as_json=as_json,
    )


@role_app.command("delete", epilog="Example: dragoman role delete approver")
def delete_role(context: typer.Context, role: Role) -> None:
    """Delete a custom role that is not in use."""
    session_of(context).delete(path_to(_PATH, role), f"Deleted the role {role}.")
