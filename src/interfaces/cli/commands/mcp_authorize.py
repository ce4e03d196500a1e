"""`dragoman mcp authorize`, and the authentication options of `mcp add`."""

import json

import typer

from domain.json_value import JsonObject
from interfaces.cli.api import path_to
from interfaces.cli.arguments import ServerArgument
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.mcp_servers.auth_views import AuthorizationView


def authorize_server(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Print the URL where a person authorizes Dragoman. The server has auth of type
    oauth_authorization_code. It works once, for a few minutes, and redirects to the running
    service."""
    session = session_of(context)

    def display(authorization: AuthorizationView) -> None:
        session.terminal.note(f"Open this in a browser before {authorization['expires_at']}:")
        session.terminal.line(authorization["authorization_url"])

    session.show(
        AuthorizationView, lambda api: api.post(path_to("mcp-servers", slug, "authorize")), display, as_json=as_json
    )


def values_and_secrets(field: str, option: str, values: list[str] | None, secrets: list[str] | None) -> JsonObject:
    """The field from values and names of secrets; empty if neither was given."""
    if not values and not secrets:
        return {}
    return {field: {**_named_values(option, values or []), **_named_secrets(f"{option}-secret", secrets or [])}}


def _named_values(option: str, entries: list[str]) -> JsonObject:
    values: JsonObject = {}
    for entry in entries:
        name, separator, value = entry.partition("=")
        if not separator or not name:
            # The entry may be a secret, so the message omits it.
            raise BadUsage(f"{option} takes NAME=VALUE.")
        values[name] = value
    return values


def _named_secrets(option: str, entries: list[str]) -> JsonObject:
    """`NAME=SECRET` entries as references to secrets by name."""
    values: JsonObject = {}
    for entry in entries:
        name, separator, secret = entry.partition("=")
        if not separator or not name or not secret:
            raise BadUsage(f"{option} takes NAME=SECRET, where SECRET is the name of a secret.")
        values[name] = {"secret": secret}
    return values


def auth_of(bearer_secret: str | None, auth: str | None, *, oauth: bool) -> JsonObject:
    """The `auth` from the options, if any."""
    if (bearer_secret is not None) + (auth is not None) + oauth > 1:
        raise BadUsage("--bearer-secret, --auth and --oauth exclude each other.")
    if auth is not None:
        try:
            given = json.loads(auth)
        except ValueError:
            given = None
        if not isinstance(given, dict):
            raise BadUsage('--auth takes JSON, such as {"type": "bearer", "token": {"secret": NAME}}.')
        return {"auth": given}
    if bearer_secret is not None:
        return {"auth": {"type": "bearer", "token": {"secret": bearer_secret}}}
    return {"auth": {"type": "oauth_authorization_code"}} if oauth else {}
