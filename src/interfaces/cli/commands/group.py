"""`dragoman group`: groups of people."""

from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.completion import completed
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, Session, session_of
from interfaces.http.groups.views import GroupView

group_app = typer.Typer(
    help="Manage groups of people.",
    no_args_is_help=True,
    epilog='Example: dragoman group create "Support leads" --member usr_0123',
)
_PATH = "groups"
Group = Annotated[
    str,
    typer.Argument(
        metavar="GROUP",
        help="The group's name or id.",
        autocompletion=completed("groups", "name", described_by="id"),
    ),
]
Users = Annotated[list[str], typer.Argument(metavar="USER...", help="Ids of users.")]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claim",
        metavar="PROVIDER:CLAIM=VALUE",
        help="People with this value in a claim of an identity provider are members. May be repeated.",
    ),
]


def show_groups(session: Session, *, as_json: bool) -> None:
    """All groups as a table, or as JSON."""

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to(_PATH))
        if as_json:
            session.terminal.json(document)
            return
        rows = [
            (
                group["name"],
                str(len({*group["members"], *group["members_by_claim"]})),
                "the directory" if group["identity_provider_id"] else "the organization",
                group["id"],
            )
            for group in entries_of(GroupView, document)
        ]
        empty = "There are no groups. Create one with `dragoman group create NAME`."
        session.terminal.table(("name", "members", "managed by", "id"), rows, empty=empty)

    session.perform(show)


@group_app.command("list", epilog="Example: dragoman group list")
def list_groups(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List groups of the organization and of its directory."""
    show_groups(session_of(context), as_json=as_json)


@group_app.command("show", epilog='Example: dragoman group show "Support leads"')
def show_group(context: typer.Context, group: Group, as_json: JsonFlag = False) -> None:
    """Show a group, its members and its claims."""
    session = session_of(context)

    def display(found: GroupView) -> None:
        by_whom = "the company's directory" if found["identity_provider_id"] else "the organization"
        session.terminal.line(f"{found['name']} ({found['id']}), managed by {by_whom}")
        for member in found["members"]:
            session.terminal.line(f"member: {member}")
        for member in found["members_by_claim"]:
            session.terminal.line(f"member by claim: {member}")
        for claim in found["claims"]:
            session.terminal.line(f"claim: {claim['identity_provider']}:{claim['claim']}={claim['value']}")

    session.show(GroupView, lambda api: api.get(path_to(_PATH, group)), display, as_json=as_json)


@group_app.command("create", epilog='Example: dragoman group create "Support leads" --claim company:groups=support')
def create_group(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")],
    member: Annotated[list[str] | None, typer.Option("--member", metavar="USER", help="Id of a user.")] = None,
    claim: Claims = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a group."""
    session = session_of(context)
    body: JsonObject = {"name": name, "members": [*(member or ())], "claims": [*map(_claim, claim or ())]}
    session.show(
        GroupView,
        lambda api: api.post(path_to(_PATH), body),
        lambda created: session.terminal.note(f"Created {created['name']} ({created['id']})."),
        as_json=as_json,
        creates=True,
    )


@group_app.command("set", epilog='Example: dragoman group set Support --name "Support leads"')
def change_group(
    *,
    context: typer.Context,
    group: Group,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The new name.")] = None,
    claim: Claims = None,
    no_claims: Annotated[bool, typer.Option("--no-claims", help="Claims make no person a member.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Change the name or the claims of a group. New claims replace all earlier ones."""
    body: JsonObject = {} if name is None else {"name": name}
    if claim and no_claims:
        raise BadUsage("Give --claim or --no-claims, not both.")
    if claim or no_claims:
        body["claims"] = [*map(_claim, claim or ())]
    if not body:
        raise BadUsage("Nothing to change: give --name, --claim or --no-claims.")
    _change(session_of(context), group, body, as_json=as_json)


@group_app.command("add", epilog='Example: dragoman group add "Support leads" usr_0123')
def add_members(context: typer.Context, group: Group, users: Users, as_json: JsonFlag = False) -> None:
    """Make users members of a group."""
    _change(session_of(context), group, {"add_members": [*users]}, as_json=as_json)


@group_app.command("remove", epilog='Example: dragoman group remove "Support leads" usr_0123')
def remove_members(context: typer.Context, group: Group, users: Users, as_json: JsonFlag = False) -> None:
    """Take users out of a group."""
    _change(session_of(context), group, {"remove_members": [*users]}, as_json=as_json)


@group_app.command("delete", epilog='Example: dragoman group delete "Support leads"')
def delete_group(context: typer.Context, group: Group) -> None:
    """Delete a group. Its members stay users."""
    session_of(context).delete(path_to(_PATH, group), f"Deleted {group}.")


def _change(session: Session, group: str, body: JsonObject, *, as_json: bool) -> None:
    def display(changed: GroupView) -> None:
        count = len({*changed["members"], *changed["members_by_claim"]})
        session.terminal.note(f"Changed {changed['name']}. Members: {count}.")

    session.show(GroupView, lambda api: api.patch(path_to(_PATH, group), body), display, as_json=as_json)


def _claim(text: str) -> JsonValue:
    """Names of identity providers have no colon."""
    provider, colon, match = text.partition(":")
    claim, equals, value = match.partition("=")
    if not colon or not equals:
        raise BadUsage(f"--claim takes PROVIDER:CLAIM=VALUE, such as company:groups=support, not {text[:60]!r}.")
    return {"identity_provider": provider, "claim": claim, "value": value}
