"""Webhook deliveries of a run and of the inbox, and sending one again."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.system.pages import PageRequest
from application.webhooks.queries import ListInboxDeliveries, ListWebhookDeliveries
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery, RetryWebhookDeliveryCommand
from domain.identity.permission import Permission
from domain.ids import RunId, WebhookDeliveryId
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

SHOWN = 50
CHANGED = "deliveries-changed"
"""Event of the browser after a retry."""


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
