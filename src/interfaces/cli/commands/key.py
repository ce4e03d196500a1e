"""`dragoman key`: API keys."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.completion import completed
from interfaces.cli.failures import BadUsage
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.api_keys.views import ApiKeyView, CreatedApiKeyView, RevokedApiKeyView
from interfaces.http.roles.views import role_fields

key_app = typer.Typer(
    help="Manage API keys.", no_args_is_help=True, epilog="Example: dragoman key create ci --role runner"
)


@key_app.command("create", epilog="Example: dragoman key create ci --role runner --days 90 --rate 60/60")
def create_key(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="viewer, runner, operator, admin (each includes the previous one), or a custom role.",
        ),
    ] = "runner",
    days: Annotated[
        float | None, typer.Option("--days", metavar="DAYS", help="Validity in days; by default until revoked.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="CALLS/SECONDS", help="Rate limit, such as 60/60.")
    ] = None,
    platform: Annotated[
        bool,
        typer.Option(
            "--platform", help="The key also manages organizations (requires a platform key, and the role admin)."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create a key and print its token, which is shown only once."""
    session = session_of(context)
    body: JsonObject = {"name": name, **role_fields(role)}
    if days is not None:
        body["expires_at"] = _in_days(days)
    if rate is not None:
        body["rate_limit"] = _rate_limit(rate)
    if platform:
        body["platform"] = True

    def display(key: CreatedApiKeyView) -> None:
        given = key["custom_role"] or key["role"]
        session.terminal.note(f"Created the key {key['id']} with the role {given}. Its token is shown only once:")
        session.terminal.line(key["token"])

    session.show(
        CreatedApiKeyView, lambda api: api.post(path_to("api-keys"), body), display, as_json=as_json, creates=True
    )


@key_app.command("list", epilog="Example: dragoman key list --json")
def list_keys(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List keys, including revoked ones, without their tokens."""
    session_of(context).show_list(
        ApiKeyView,
        path_to("api-keys"),
        ("id", "name", "role", "platform", "last used", "ends", "created"),
        lambda key, _: (
            key["id"],
            key["name"],
            key["custom_role"] or key["role"],
            "yes" if key["platform"] else "",
            key["last_used_at"] or "never",
            f"revoked {key['revoked_at']}" if key["revoked_at"] else key["expires_at"] or "",
            key["created_at"],
        ),
        empty="There are no keys.",
        as_json=as_json,
    )


@key_app.command("revoke", epilog="Example: dragoman key revoke key_0123")
def revoke_key(
    context: typer.Context,
    key_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The key's id, or its beginning.",
            autocompletion=completed("api-keys", described_by="name"),
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a key; it stops working at once, and what it started ends."""
    session = session_of(context)

    async def revoke(api: ServiceApi) -> None:
        document = await api.delete(path_to("api-keys", key_id))
        if as_json:
            session.terminal.json(document)
            return
        session.terminal.note(f"Revoked {key_id}. {_ended_with(read_as(RevokedApiKeyView, document))}")

    session.perform(revoke)


def _ended_with(key: RevokedApiKeyView) -> str:
    counts = (
        (key["cancelled_runs"], "run"),
        (key["cancelled_workflow_runs"], "workflow run"),
        (key["revoked_gateway_sessions"], "gateway session"),
    )
    ended = [f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts if count]
    return f"Ended with it: {', '.join(ended)}." if ended else "Nothing that it started was under way."


def _in_days(days: float) -> str:
    try:
        return (datetime.now(UTC) + timedelta(days=days)).isoformat()
    except (OverflowError, ValueError):
        raise BadUsage(f"{days} days is not a valid period.") from None


def _rate_limit(text: str) -> JsonValue:
    calls, separator, per_s = text.partition("/")
    try:
        return {"calls": int(calls), "per_s": float(per_s if separator else "")}
    except ValueError:
        raise BadUsage(f"--rate takes CALLS/SECONDS, such as 60/60, not {text[:40]!r}.") from None
