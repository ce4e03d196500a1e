"""A person's accounts at MCP servers as JSON: never their tokens."""

from typing import Annotated, TypedDict

from application.mcp.list_accounts import ListedAccount
from domain.threads.message_json import timestamp
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.view_fields import Items, Timestamp


class AccountView(TypedDict):
    """The caller's account at an MCP server that is, or was, used with each person's own one. Of a
    server of a group that the caller left, it has the slug and the id alone: the other fields are
    empty, null or false, and `stored` is true."""

    server: Annotated[str, "Slug of the MCP server."]
    server_id: Annotated[str, "Id of the MCP server."]
    connected: Annotated[bool, "Whether runs that the caller starts can use the server."]
    used: Annotated[
        bool,
        "Whether the caller may use the server with their own account. If false, they can only delete what is stored.",
    ]
    stored: Annotated[bool, "Whether tokens or secrets of the caller are stored, which can be deleted."]
    sign_in_with: Annotated[
        str | None,
        "The issuer that the server needs a sign-in with, if the caller signed in with another one; else null.",
    ]
    secrets: Annotated[list[str], "Names of the secrets that the caller gives; empty for an authorization server."]
    address: Annotated[str, "Where the tokens or secrets are sent; of a started server, the program that gets them."]
    env: Annotated[
        dict[str, WriteOnlyView],
        "Variables of a started server, which may say where it sends the secrets. Values are write-only, or references.",
    ]
    offer: Annotated[str, "Names the server as it is now. Secrets that are given with it go to nothing else."]
    issuer: Annotated[
        str | None,
        "The authorization server, or the identity provider of the sign-in; null until it is connected, and for secrets.",
    ]
    scope: Annotated[str | None, "What was granted, if the authorization server says so."]
    renewed_at: Annotated[
        Timestamp | None, "When the authorization server last issued a token, or when the caller gave the secrets."
    ]
    link: Annotated[
        str,
        "If `used`, the page where the caller connects the account, or renews it, or gives the secrets, in a browser.",
    ]


class AccountList(TypedDict):
    """All accounts, by the slugs of their servers."""

    data: Items[AccountView]


def account_view(listed: ListedAccount) -> AccountView:
    account = listed.account
    config = listed.server.config if listed.is_visible else None
    return {
        "server": listed.server.config.slug,
        "server_id": listed.server.id,
        "connected": listed.is_connected,
        "used": listed.is_used,
        "stored": listed.is_stored,
        "sign_in_with": listed.sign_in_with,
        "secrets": [] if config is None else [*config.person_secrets],
        "address": "" if config is None else listed.address,
        "env": {} if config is None else {name: write_only_view(value) for name, value in config.env.items()},
        "offer": "" if config is None else listed.offer,
        "issuer": None if account is None else account.issuer,
        "scope": None if account is None else account.scope,
        "renewed_at": None if account is None else timestamp(account.renewed_at),
        "link": listed.link,
    }
