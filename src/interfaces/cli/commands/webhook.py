"""`dragoman webhook`: webhook deliveries and the signing key."""

from typing import Annotated

import typer

from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.webhooks.views import CreatedWebhookKeyView, WebhookDeliveryView

OptionalRun = Annotated[str | None, typer.Argument(metavar="RUN", help="The run's id, run_….")]

webhook_app = typer.Typer(
    help="Manage webhook deliveries and the signing key.",
    no_args_is_help=True,
    epilog="Example: dragoman webhook list run_0123",
)


@webhook_app.command("list", epilog="Examples: dragoman webhook list run_0123 --json; dragoman webhook list")
def list_deliveries(
    context: typer.Context,
    run_id: OptionalRun = None,
    as_json: JsonFlag = False,
) -> None:
    """List webhook deliveries, newest first: of a run, or of the inbox."""
    session_of(context).show_list(
        WebhookDeliveryView,
        path_to("runs", run_id, "webhook-deliveries") if run_id else path_to("organization", "webhook-deliveries"),
        ("id", "state", "event", "outlook", "attempts", "receiver"),
        lambda entry, _: (
            entry["id"],
            entry["state"],
            entry["event"],
            _outlook(entry),
            str(entry["attempts"]),
            entry["receiver"],
        ),
        empty="The run has no deliveries: it has no webhook, or has not ended or waited yet."
        if run_id
        else "Nothing was sent to the webhook of the inbox.",
        as_json=as_json,
    )


@webhook_app.command("retry", epilog="Example: dragoman webhook retry whk_0123")
def retry(
    context: typer.Context,
    delivery_id: Annotated[str, typer.Argument(metavar="ID", help="The delivery's id, whk_….")],
    as_json: JsonFlag = False,
) -> None:
    """Send a delivery again, whatever its state. The webhook-id and the body stay the same."""
    session = session_of(context)

    async def send(api: ServiceApi) -> None:
        document = await api.post(path_to("webhook-deliveries", delivery_id, "retry"))
        delivery = read_as(WebhookDeliveryView, document)
        session.terminal.note(f"{delivery['id']} is sent again: {delivery['event']} to {delivery['receiver']}.")
        if as_json:
            session.terminal.json(document)

    session.perform(send)


@webhook_app.command("key", epilog="Example: dragoman webhook key")
def make_key(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Create a new key that signs the organization's webhooks. It is printed once, alone on
    stdout."""
    session = session_of(context)

    async def make(api: ServiceApi) -> None:
        document = await api.post(path_to("organization", "webhook-key"))
        key = read_as(CreatedWebhookKeyView, document)
        session.terminal.note("A new key signs webhooks from now on. It is shown only once:")
        if as_json:
            session.terminal.json(document)
        else:
            session.terminal.line(key["secret"])
        if key["former_signs_until"]:
            session.terminal.note(f"The previous key also signs until {key['former_signs_until']}.")

    session.perform(make)


def _outlook(delivery: WebhookDeliveryView) -> str:
    """What happens next, or what has."""
    if delivery["delivered_at"]:
        return f"delivered {delivery['delivered_at']}"
    next_one = f"next attempt {delivery['next_attempt_at']}" if delivery["next_attempt_at"] else ""
    return "; ".join(part for part in (delivery["last_error"], next_one) if part)
