"""Webhook deliveries of a run, of the inbox and of all, their receivers, and sending one again."""

from typing import Annotated
from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.system.pages import Page, PageRequest
from application.webhooks.ports import DeliveryFilter
from application.webhooks.queries import (
    ListDeliveries,
    ListInboxDeliveries,
    ListWebhookDeliveries,
    ListWebhookReceivers,
)
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery, RetryWebhookDeliveryCommand
from domain.identity.permission import Permission
from domain.ids import RunId, WebhookDeliveryId
from domain.webhooks.delivery import DeliveryState, WebhookDelivery
from interfaces.console.asked_runs import begin_of
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

SHOWN = 50
CHANGED = "deliveries-changed"
"""Event of the browser after a retry."""
_LOOKS = {
    DeliveryState.PENDING: "in_progress",
    DeliveryState.DELIVERING: "in_progress",
    DeliveryState.DELIVERED: "completed",
    DeliveryState.FAILED: "failed",
}
"""How each state looks: as this state of a run."""


@get("/webhooks")
async def show_webhooks(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_deliveries: NamedDependency[ListDeliveries],
    list_webhook_receivers: NamedDependency[ListWebhookReceivers],
    delivery_state: Annotated[str, QueryParameter(name="state")] = "",
    receiver: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """Receivers, and the deliveries to all of them that match, newest first. Days are in UTC, both
    inclusive."""
    given = {"state": delivery_state, "receiver": receiver.strip(), "since": since, "until": until}
    wanted = DeliveryFilter(
        state=next((each for each in DeliveryState if each.value == delivery_state), None),
        receiver=given["receiver"] or None,
        since=begin_of(since),
        until=begin_of(until, days=1),
    )
    faults = [f"“{day}” is not a day as YYYY-MM-DD." for day in (since, until) if day and not begin_of(day)]
    if delivery_state and wanted.state is None:
        faults.append(f"“{delivery_state}” is not a state of deliveries.")
    if wanted.since and wanted.until and wanted.since >= wanted.until:
        faults.append("The first day is after the last one.")
    found: Page[WebhookDelivery] = Page(items=())
    if not faults:
        found = await list_deliveries.execute(request.principal, wanted, PageRequest(limit=SHOWN, cursor=cursor))
    context = {
        "receivers": await list_webhook_receivers.execute(request.principal),
        "states": _LOOKS,
        "asked": FormValues(given),
        "is_filtered": any(given.values()),
        "faults": faults,
        "deliveries": found.items,
        "may_retry": request.principal.may(Permission.WEBHOOKS_RETRY),
        "next_cursor": found.next_cursor,
        "query": urlencode({name: value for name, value in given.items() if value}),
    }
    return pages.show(request, "webhooks.html", context)


@get("/runs/{run_id:str}/deliveries")
async def show_deliveries(
    request: ConsoleRequest,
    run_id: FromPath[str],
    pages: NamedDependency[Pages],
    list_webhook_deliveries: NamedDependency[ListWebhookDeliveries],
) -> Response[str]:
    """Newest first."""
    found = await list_webhook_deliveries.execute(request.principal, RunId(run_id), PageRequest(limit=SHOWN))
    context = {"deliveries": found.items, "may_retry": request.principal.may(Permission.WEBHOOKS_RETRY)}
    return pages.show(request, "parts/deliveries.html", context)


@get("/settings/deliveries")
async def show_inbox_deliveries(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_inbox_deliveries: NamedDependency[ListInboxDeliveries],
) -> Response[str]:
    """What was sent to the webhook of the inbox, newest first."""
    found = await list_inbox_deliveries.execute(request.principal, PageRequest(limit=SHOWN))
    return pages.show(
        request,
        "parts/deliveries.html",
        {"deliveries": found.items, "may_retry": request.principal.may(Permission.WEBHOOKS_RETRY)},
    )


@post("/deliveries/{delivery_id:str}/retry", status_code=200)
async def retry_delivery(
    request: ConsoleRequest,
    delivery_id: FromPath[str],
    retry_webhook_delivery: NamedDependency[RetryWebhookDelivery],
) -> Response[str]:
    await retry_webhook_delivery.execute(
        RetryWebhookDeliveryCommand(principal=request.principal, delivery_id=WebhookDeliveryId(delivery_id))
    )
    return Response("", headers={HTMXHeaders.TRIGGER_EVENT.value: CHANGED})
