"""`dragoman user`: people who signed in."""

from typing import Annotated

import typer

from domain.identity.impersonation import DEFAULT_MINUTES, MAX_MINUTES
from domain.identity.user import UserStatus
from domain.json_value import JsonObject
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.commands.group import show_groups
from interfaces.cli.completion import completed
from interfaces.cli.session import JsonFlag, Session, session_of
from interfaces.http.roles.views import role_fields
from interfaces.http.users.views import BegunImpersonationView, UpdatedUserView, UserView

user_app = typer.Typer(
    help="Manage people who signed in.", no_args_is_help=True, epilog="Example: dragoman user deactivate usr_0123"
)
User = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The user's id, or its beginning.",
        autocompletion=completed("users", described_by="email"),
    ),
]


@user_app.command("list", epilog="Example: dragoman user list --status removed")
def list_users(
    context: typer.Context,
    status: Annotated[
        UserStatus | None, typer.Option(help="Only users with this status; without it, those not removed.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List users."""
    session_of(context).show_list(
        UserView,
        path_to("users"),
        ("id", "name", "e-mail", "role", "status", "last sign-in"),
        lambda user, _: (
            user["id"],
            user["name"] or user["subject"],
            user["email"] or "",
            f"{_role(user)}, fixed" if user["role_fixed"] else _role(user),
            user["status"],
            user["last_sign_in_at"] or "never",
        ),
        query=None if status is None else {"status": status.value},
        empty="There are no users. People are users once they sign in: `dragoman idp add NAME`."
        if status is None
        else f"There are no {status.value} users.",
        as_json=as_json,
    )


@user_app.command("groups", hidden=True, epilog="Example: dragoman user groups")
def list_groups(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Former name of `dragoman group list`."""
    show_groups(session_of(context), as_json=as_json)


@user_app.command("show", epilog="Example: dragoman user show usr_0123")
def show_user(context: typer.Context, user_id: User, as_json: JsonFlag = False) -> None:
    """Show a user."""
    session = session_of(context)

    def display(user: UserView) -> None:
        session.terminal.line(
            f"{user['id']}, {user['name'] or user['subject']}, {user['email'] or 'no e-mail address'}"
        )
        session.terminal.line(f"{_role(user)}, {user['status']}, at {user['issuer']} as {user['subject']}")

    session.show(UserView, lambda api: api.get(path_to("users", user_id)), display, as_json=as_json)


@user_app.command("role", epilog="Example: dragoman user role usr_0123 operator")
def set_role(
    context: typer.Context,
    user_id: User,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="viewer, runner, operator, admin, or a custom role.")],
    as_json: JsonFlag = False,
) -> None:
    """Give a user a role that later sign-ins do not change."""
    _change(session_of(context), user_id, role_fields(role), f"{user_id} has the role {role}.", as_json=as_json)


@user_app.command("deactivate", epilog="Example: dragoman user deactivate usr_0123")
def deactivate_user(context: typer.Context, user_id: User, as_json: JsonFlag = False) -> None:
    """Refuse a user at once, and end what they started."""
    _change(session_of(context), user_id, {"status": "deactivated"}, f"Deactivated {user_id}.", as_json=as_json)


@user_app.command("activate", epilog="Example: dragoman user activate usr_0123")
def activate_user(context: typer.Context, user_id: User, as_json: JsonFlag = False) -> None:
    """Admit a deactivated or removed user again."""
    _change(session_of(context), user_id, {"status": "active"}, f"Activated {user_id}.", as_json=as_json)


@user_app.command("support", epilog="Example: dragoman user support usr_0123")
def let_impersonate(
    context: typer.Context,
    user_id: User,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let a user act as other users, for support."""
    done = f"{user_id} {'no longer acts' if off else 'may act'} as other users."
    _change(session_of(context), user_id, {"may_impersonate": not off}, done, as_json=as_json)


@user_app.command("impersonate", epilog='Example: dragoman user impersonate usr_0123 --reason "Ticket 4711"')
def begin_impersonation(
    context: typer.Context,
    user_id: User,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why. The user reads it.")],
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=MAX_MINUTES)] = DEFAULT_MINUTES,
    as_json: JsonFlag = False,
) -> None:
    """Act as a user for some minutes. The user sees it."""
    session = session_of(context)

    def display(begun: BegunImpersonationView) -> None:
        session.terminal.note(
            f"You act as {begun['user_id']} until {begun['expires_at']}, with DRAGOMAN_API_KEY set to this token."
            f" `dragoman session end {begun['id']}` ends it."
        )
        session.terminal.line(begun["token"])

    body: JsonObject = {"reason": reason, "minutes": minutes}
    session.show(
        BegunImpersonationView,
        lambda api: api.post(path_to("users", user_id, "impersonation"), body),
        display,
        as_json=as_json,
    )


@user_app.command("remove", epilog="Example: dragoman user remove usr_0123")
def remove_user(context: typer.Context, user_id: User, as_json: JsonFlag = False) -> None:
    """Deactivate a user, and delete their name and e-mail address."""
    session = session_of(context)

    async def remove(api: ServiceApi) -> None:
        document = await api.delete(path_to("users", user_id))
        if as_json:
            session.terminal.json(document)
            return
        session.terminal.note(f"Removed {user_id}.{_ended(read_as(UpdatedUserView, document))}")

    session.perform(remove)


def _change(session: Session, user_id: str, body: JsonObject, done: str, *, as_json: bool) -> None:
    session.show(
        UpdatedUserView,
        lambda api: api.patch(path_to("users", user_id), body),
        lambda user: session.terminal.note(f"{done}{_ended(user)}"),
        as_json=as_json,
    )


def _role(user: UserView) -> str:
    return user["custom_role"] or user["role"]


def _ended(user: UpdatedUserView) -> str:
    runs = user["cancelled_runs"] + user["cancelled_workflow_runs"]
    return f" Runs that end: {runs}." if runs else ""
