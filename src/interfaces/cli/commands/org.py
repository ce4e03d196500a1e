"""`dragoman org`: organizations."""

from typing import Annotated

import typer

from interfaces.cli.api import path_to
from interfaces.cli.field_values import field_values
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, short_json
from interfaces.http.api_keys.views import CreatedApiKeyView
from interfaces.http.organization.views import (
    CreatedOrganizationView,
    OrganizationView,
    SavedOrganizationView,
    UserLimitsView,
)

org_app = typer.Typer(
    help="Manage organizations and their settings. Others than your own require a platform key.",
    no_args_is_help=True,
    epilog="Example: dragoman org create acme",
)


_FIELDS = tuple(name for name in OrganizationView.__annotations__ if name not in {"id", "version", "created_at"})
Organization = Annotated[
    str | None, typer.Option("--org", metavar="ID", help="Another organization (requires a platform key).")
]


@org_app.command("create", epilog="Example: dragoman org create acme")
def create_organization(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    as_json: JsonFlag = False,
) -> None:
    """Create an organization and print its admin token. The token is shown only once."""
    session = session_of(context)

    def display(organization: CreatedOrganizationView) -> None:
        session.terminal.note(
            f"Created {organization['name']} ({organization['id']}). The token of its admin is shown only once:"
        )
        session.terminal.line(organization["admin_key"]["token"])

    session.show(
        CreatedOrganizationView,
        lambda api: api.post(path_to("organizations"), {"name": name}),
        display,
        as_json=as_json,
        creates=True,
    )


@org_app.command("show", epilog="Example: dragoman org show")
def show_organization(context: typer.Context, org: Organization = None, as_json: JsonFlag = False) -> None:
    """Show the settings of the key's organization, or of another one."""
    session = session_of(context)
    session.show(
        OrganizationView,
        lambda api: api.get(path_to("organization") if org is None else path_to("organizations", org)),
        lambda organization: _show(session.terminal, organization),
        as_json=as_json,
    )


def _show(terminal: Terminal, organization: OrganizationView) -> None:
    limits = {name: value for name, value in organization["limits"].items() if value is not None}
    allowlist, budget = organization["tool_allowlist"], organization["daily_budget_usd"]
    terminal.fields(
        {
            "name": organization["name"],
            "id": organization["id"],
            "version": str(organization["version"]),
            "created": organization["created_at"],
            "MCP": "on" if organization["mcp_enabled"] else "off",
            "kinds of servers": "all" if organization["mcp_kinds"] is None else ", ".join(organization["mcp_kinds"]),
            "weight in the queue": str(organization["queue_weight"]),
            "queued runs at most": "" if organization["max_queued"] is None else str(organization["max_queued"]),
            "runs at a time": "" if organization["max_running"] is None else str(organization["max_running"]),
            "first use of tools": organization["first_use"],
            "models": ", ".join(organization["models"]),
            "allowlist": "" if allowlist is None else ", ".join(allowlist) or "nothing",
            "policies": short_json(dict(organization["tool_policies"]), 1_000) if organization["tool_policies"] else "",
            "limits": short_json(limits, 200) if limits else "",
            "daily budget": "" if budget is None else f"${budget:.2f}",
            "webhook of the inbox": organization["inbox_webhook_secret"] or "",
            "daily budget of users": _user_budgets(organization),
            "limits of users": _user_limits(organization),
            "keys count for users": "yes" if organization["keys_count_for_users"] else "",
            "retention": "" if organization["retention_days"] is None else f"{organization['retention_days']} days",
        }
    )


def _user_budgets(organization: OrganizationView) -> str:
    every, named = organization["user_daily_budget_usd"], organization["user_daily_budgets_usd"]
    shown = [] if every is None else [f"${every:.2f} each"]
    return ", ".join([*shown, *(f"{user_id} ${budget:.2f}" for user_id, budget in named.items())])


def _user_limits(organization: OrganizationView) -> str:
    every = _limits_shown(organization["user_limits"])
    named = {user_id: _limits_shown(limits) for user_id, limits in organization["limits_of_users"].items()}
    return "; ".join(
        [*([f"{every} each"] if every else []), *(f"{user_id} {shown}" for user_id, shown in named.items())]
    )


def _limits_shown(limits: UserLimitsView) -> str:
    rate, most = limits["rate_limit"], limits["max_active_runs"]
    shown = [] if rate is None else [f"{rate['calls']} requests per {rate['per_s']:g} s"]
    return ", ".join([*shown, *([] if most is None else [f"{most} active runs"])])


@org_app.command("list", epilog="Example: dragoman org list --json")
def list_organizations(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List all organizations."""
    session_of(context).show_list(
        OrganizationView,
        path_to("organizations"),
        ("id", "name", "MCP", "kinds of servers", "created"),
        lambda organization, _: (
            organization["id"],
            organization["name"],
            "on" if organization["mcp_enabled"] else "off",
            "all" if organization["mcp_kinds"] is None else ", ".join(organization["mcp_kinds"]),
            organization["created_at"],
        ),
        empty="There are no organizations.",
        as_json=as_json,
    )


@org_app.command(
    "set",
    epilog="Examples: dragoman org set mcp_enabled=false; dragoman org set --org org_0123 name=Acme daily_budget_usd=25",
)
def set_organization(
    context: typer.Context,
    fields: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE...", help=f"{', '.join(_FIELDS)}; a value is JSON, else text.")
    ],
    org: Organization = None,
    as_json: JsonFlag = False,
) -> None:
    """Change settings of the key's organization, or of another one."""
    session = session_of(context)
    changes = field_values(fields, texts=("name", "inbox_webhook_secret"), fields=_FIELDS)
    path = path_to("organization") if org is None else path_to("organizations", org)

    def display(organization: SavedOrganizationView) -> None:
        session.terminal.note(f"{organization['name']} ({organization['id']}) is at version {organization['version']}.")
        for warning in organization["warnings"]:
            session.terminal.note(f"Warning: {warning}{'' if warning.endswith('?') else '.'}")

    session.show(SavedOrganizationView, lambda api: api.patch(path, changes), display, as_json=as_json)


@org_app.command("key", epilog='Example: dragoman org key org_0123 "second admin"')
def create_organization_key(
    context: typer.Context,
    org: Annotated[str, typer.Argument(metavar="ID", help="The organization's id, org_….")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    as_json: JsonFlag = False,
) -> None:
    """Create an admin key for an organization, and print its token. This is for an organization
    that has lost its own, and requires a platform key."""
    session = session_of(context)

    def display(key: CreatedApiKeyView) -> None:
        session.terminal.note(f"Created the admin key {key['id']} of {org}. Its token is shown only once:")
        session.terminal.line(key["token"])

    session.show(
        CreatedApiKeyView,
        lambda api: api.post(path_to("organizations", org, "api-keys"), {"name": name}),
        display,
        as_json=as_json,
    )
