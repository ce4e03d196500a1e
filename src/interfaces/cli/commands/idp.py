"""`dragoman idp`: identity providers, where people sign in."""

from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import FAILED, BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.identity_providers.views import (
    IdentityProviderTestView,
    IdentityProviderView,
    RoleRuleView,
    ScimTokenView,
)
from interfaces.http.roles.views import role_fields

idp_app = typer.Typer(
    help="Manage the identity providers where people sign in.",
    no_args_is_help=True,
    epilog="Example: dragoman idp add company --issuer https://login.example.com --client-id dragoman --public"
    " --rule groups=agents:operator",
)
_PATH = "identity-providers"
Name = Annotated[str, typer.Argument(metavar="NAME", help="The identity provider's name or id.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="CLAIM=VALUE:ROLE[@ORG]",
        help="A rule; * matches any value. May be repeated: the first that matches decides.",
    ),
]
Audiences = Annotated[
    list[str] | None,
    typer.Option("--audience", metavar="NAME", help="An audience of bearer tokens, besides the client id."),
]
CliClient = Annotated[
    str | None,
    typer.Option("--cli-client-id", metavar="ID", help="The public client with which people use `dragoman login`."),
]
Scopes = Annotated[
    str | None, typer.Option("--scopes", metavar="NAMES", help='Default: "openid profile email"; separated by spaces.')
]


@idp_app.command(
    "add",
    epilog="Examples: printenv CLIENT_SECRET | dragoman idp add company --issuer https://login.example.com"
    " --client-id dragoman --rule groups=agents:operator --installation",
)
def add_provider(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the identity provider.")],
    issuer: Annotated[str, typer.Option("--issuer", metavar="URL", help="The issuer (OpenID Connect).")],
    client_id: Annotated[str, typer.Option("--client-id", metavar="ID", help="The client registered for Dragoman.")],
    public: Annotated[bool, typer.Option("--public", help="The client has no secret.")] = False,
    cli_client_id: CliClient = None,
    scopes: Scopes = None,
    audience: Audiences = None,
    rule: Rules = None,
    installation: Annotated[
        bool,
        typer.Option(
            "--installation", help="Every sign-in page offers it; rules may name organizations (platform key)."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add an identity provider. The client's secret is read from standard input."""
    session = session_of(context)
    body: JsonObject = {"name": name, "issuer": issuer, "client_id": client_id, "installation": installation}
    body |= _settings(cli_client_id, scopes, audience, rule)
    if not public:
        secret = session.read_secret(f"Client secret of {name} (not shown): ").strip()
        if not secret:
            raise BadUsage("The client secret is empty. If the client has none, give --public.")
        body["client_secret"] = secret

    def display(provider: IdentityProviderView) -> None:
        session.terminal.note(f"Added {provider['name']} ({provider['id']}). Test it with `dragoman idp test {name}`.")
        if not provider["rules"]:
            session.terminal.note(f"No rule admits anybody yet: `dragoman idp set {name} --rule CLAIM=VALUE:ROLE`.")

    session.show(
        IdentityProviderView, lambda api: api.post(path_to(_PATH), body), display, as_json=as_json, creates=True
    )


@idp_app.command("set", epilog="Example: dragoman idp set company --rule groups=admins:admin --rule sub=*:viewer")
def change_provider(
    *,
    context: typer.Context,
    name: Name,
    cli_client_id: CliClient = None,
    scopes: Scopes = None,
    audience: Audiences = None,
    rule: Rules = None,
    as_json: JsonFlag = False,
) -> None:
    """Change clients, scopes, audiences or rules. New rules replace all earlier ones."""
    session = session_of(context)
    body = _settings(cli_client_id, scopes, audience, rule)
    if not body:
        raise BadUsage("Nothing to change: give --rule, --audience, --scopes or --cli-client-id.")
    session.show(
        IdentityProviderView,
        lambda api: api.patch(path_to(_PATH, name), body),
        lambda provider: session.terminal.note(f"Changed {provider['name']}."),
        as_json=as_json,
    )


@idp_app.command("list", epilog="Example: dragoman idp list --json")
def list_providers(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List identity providers, without their secrets."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to(_PATH))
        if as_json:
            session.terminal.json(document)
            return
        rows = [
            (provider["name"], provider["issuer"], provider["client_id"], str(len(provider["rules"])), provider["id"])
            for provider in entries_of(IdentityProviderView, document)
        ]
        empty = "The organization has no identity providers. Add one with `dragoman idp add NAME`."
        session.terminal.table(("name", "issuer", "client", "rules", "id"), rows, empty=empty)

    session.perform(show)


@idp_app.command("show", epilog="Example: dragoman idp show company")
def show_provider(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Show an identity provider and its rules."""
    session = session_of(context)

    def display(provider: IdentityProviderView) -> None:
        session.terminal.line(f"{provider['name']} ({provider['id']}), {provider['issuer']}")
        session.terminal.line(f"client: {provider['client_id']}, scopes: {' '.join(provider['scopes'])}")
        if provider["cli_client_id"]:
            session.terminal.line(f"client of the command line: {provider['cli_client_id']}")
        for rule in provider["rules"]:
            session.terminal.line(f"rule: {_rule_text(rule)}")

    session.show(IdentityProviderView, lambda api: api.get(path_to(_PATH, name)), display, as_json=as_json)


@idp_app.command("test", epilog="Example: dragoman idp test company")
def run_test(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Test an identity provider. The exit code is 1 if people cannot sign in."""
    session = session_of(context)

    async def test(api: ServiceApi) -> int:
        document = await api.post(path_to(_PATH, name, "test"))
        outcome = read_as(IdentityProviderTestView, document)
        if as_json:
            session.terminal.json(document)
        else:
            session.terminal.line(outcome["detail"])
        return 0 if outcome["ok"] else FAILED

    session.perform(test)


@idp_app.command("scim-token", epilog="Example: dragoman idp scim-token company")
def create_scim_token(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Create the token of the company's directory. With it the directory manages people and groups
    by SCIM 2.0. It replaces the one before."""
    session = session_of(context)

    def display(created: ScimTokenView) -> None:
        session.terminal.note(f"The directory of {name} sends this token to {created['path']}. It is shown only once:")
        session.terminal.line(created["token"])

    session.show(ScimTokenView, lambda api: api.post(path_to(_PATH, name, "scim-token")), display, as_json=as_json)


@idp_app.command("scim-revoke", epilog="Example: dragoman idp scim-revoke company")
def revoke_scim_token(context: typer.Context, name: Name) -> None:
    """Revoke the token of the company's directory. People and groups stay."""
    session_of(context).delete(path_to(_PATH, name, "scim-token"), f"Revoked the SCIM token of {name}.")


@idp_app.command("delete", epilog="Example: dragoman idp delete company")
def delete_provider(context: typer.Context, name: Name) -> None:
    """Delete an identity provider and end its people's access."""
    session_of(context).delete(path_to(_PATH, name), f"Deleted {name}.")


def _settings(
    cli_client_id: str | None, scopes: str | None, audiences: list[str] | None, rules: list[str] | None
) -> JsonObject:
    body: JsonObject = {} if cli_client_id is None else {"cli_client_id": cli_client_id}
    if scopes is not None:
        body["scopes"] = [*scopes.split()]
    if audiences:
        body["audiences"] = [*audiences]
    if rules:
        body["rules"] = [_rule(text) for text in rules]
    return body


def _rule(text: str) -> JsonValue:
    """Values may have colons and equals signs; names of claims may have colons."""
    match, separator, role = text.rpartition(":")
    claim, equals, value = match.partition("=")
    if not separator or not equals:
        raise BadUsage(f"--rule takes CLAIM=VALUE:ROLE, such as groups=agents:operator, not {text[:60]!r}.")
    role, _, organization = role.partition("@")
    rule: JsonObject = {"claim": claim, "value": value, **role_fields(role)}
    return {**rule, "organization_id": organization} if organization else rule


def _rule_text(rule: RoleRuleView) -> str:
    organization = f"@{rule['organization_id']}" if rule["organization_id"] else ""
    return f"{rule['claim']}={rule['value']}:{rule['custom_role'] or rule['role']}{organization}"
