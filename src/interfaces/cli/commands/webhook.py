"""`dragoman webhook`: webhook deliveries and the signing key."""

from typing import Annotated

import typer

from domain.webhooks.delivery import DeliveryState
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import BadUsage, wrong_choice
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.webhooks.views import CreatedWebhookKeyView, WebhookDeliveryView, WebhookReceiverView

_STATES = tuple(state.value for state in DeliveryState)
OptionalRun = Annotated[str | None, typer.Argument(metavar="RUN", help="The run's id, run_….")]

webhook_app = typer.Typer(
    help="Manage webhook deliveries and the signing key.",
    no_args_is_help=True,
    epilog="Example: dragoman webhook list run_0123",
)


@webhook_app.command(
    "list", epilog="Examples: dragoman webhook list run_0123 --json; dragoman webhook list --state failed"
)
def list_deliveries(
    *,
    context: typer.Context,
    run_id: OptionalRun = None,
    is_of_all: Annotated[bool, typer.Option("--all", help="Of all runs and of the inbox.")] = False,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Of all, only those in this state.")
    ] = None,
    receiver: Annotated[
        str | None, typer.Option("--receiver", metavar="HOST:PORT", help="Of all, only those to this receiver.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List webhook deliveries, newest first. They are of a run, of the inbox, or of all."""
    given = {"state": state, "receiver": receiver}
    query = {name: value for name, value in given.items() if value is not None}
    is_of_all = is_of_all or bool(query)
    if state is not None and state not in _STATES:
        raise wrong_choice("--state", state, _STATES)
    if is_of_all and run_id is not None:
        raise BadUsage("Give a run, or --all, --state and --receiver, which are of all runs.")
    path, empty = path_to("organization", "webhook-deliveries"), "Nothing was sent to the webhook of the inbox."
    if is_of_all:
        path, empty = path_to("webhook-deliveries"), "There are no such deliveries."
    elif run_id is not None:
        path = path_to("runs", run_id, "webhook-deliveries")
        empty = "The run has no deliveries: it has no webhook, or has not ended or waited yet."
    session_of(context).show_list(
        WebhookDeliveryView,
        path,
        ("id", "state", "event", "outlook", "attempts", "receiver"),
        lambda entry, _: (
            entry["id"],
            entry["state"],
            entry["event"],
            _outlook(entry),
            str(entry["attempts"]),
            entry["receiver"],
        ),
        empty=empty,
        query=query,
        as_json=as_json,
    )


@webhook_app.command("receivers", epilog="Example: dragoman webhook receivers")
def list_receivers(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List receivers of webhooks with their newest delivery. The last used is first."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("webhook-receivers"))
        if as_json:
            session.terminal.json(document)
            return
        session.terminal.table(
            ("receiver", "last state", "outlook", "deliveries", "open", "failed"),
            [
                (
                    f"{'inbox: ' if entry['of_inbox'] else ''}{entry['receiver']}",
                    entry["last_delivery"]["state"],
                    _outlook(entry["last_delivery"]),
                    str(entry["deliveries"]),
                    str(entry["open"] or ""),
                    str(entry["failed"] or ""),
                )
                for entry in entries_of(WebhookReceiverView, document)
            ],
            empty="Nothing was sent yet.",
        )

    session.perform(show)


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
