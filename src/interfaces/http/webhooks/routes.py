"""Routes of webhook deliveries and of the organization's signing key."""

from datetime import datetime
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import QueryParameter

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.ports import DeliveryFilter
from application.webhooks.queries import (
    ListDeliveries,
    ListInboxDeliveries,
    ListWebhookDeliveries,
    ListWebhookReceivers,
)
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery, RetryWebhookDeliveryCommand
from domain.ids import RunId, WebhookDeliveryId
from domain.webhooks.delivery import DeliveryState
from interfaces.http.moments import in_utc
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import RunPath, WebhookDeliveryPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.webhooks.views import (
    CreatedWebhookKeyView,
    WebhookDeliveryPage,
    WebhookDeliveryView,
    WebhookReceiversView,
    created_webhook_key_view,
    webhook_delivery_view,
    webhook_receiver_view,
)

TAG = Tag(name="Webhooks", description="Deliveries and the signing key.")


@get(
    "/runs/{run_id:str}/webhook-deliveries",
    summary="List the webhook deliveries of a run",
    responses=documented(404),
)
async def list_webhook_deliveries(
    *,
    request: ApiRequest,
    run_id: RunPath,
    list_webhook_deliveries: NamedDependency[ListWebhookDeliveries],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WebhookDeliveryPage:
    """Newest first."""
    return page_view(
        await list_webhook_deliveries.execute(
            principal=request.principal, run_id=RunId(run_id), page=PageRequest(limit=limit, cursor=cursor)
        ),
        webhook_delivery_view,
    )


@get(
    "/organization/webhook-deliveries",
    summary="List what was sent to the webhook of the inbox",
    responses=documented(403),
)
async def list_inbox_deliveries(
    *,
    request: ApiRequest,
    list_inbox_deliveries: NamedDependency[ListInboxDeliveries],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WebhookDeliveryPage:
    """Requires the role admin. Newest first: approvals, questions of workflows, tools and threads
    in quarantine."""
    return page_view(
        await list_inbox_deliveries.execute(request.principal, PageRequest(limit=limit, cursor=cursor)),
        webhook_delivery_view,
    )


@get("/webhook-deliveries", summary="List webhook deliveries", responses=documented())
async def list_deliveries(
    *,
    request: ApiRequest,
    list_deliveries: NamedDependency[ListDeliveries],
    status: Annotated[
        DeliveryState | None, QueryParameter(name="state", description="Only deliveries in this state.")
    ] = None,
    receiver: Annotated[
        str | None, QueryParameter(description="Only deliveries to this receiver: `hooks.example.com:443`.")
    ] = None,
    since: Annotated[datetime | None, QueryParameter(description="RFC 3339; inclusive.")] = None,
    until: Annotated[datetime | None, QueryParameter(description="RFC 3339; exclusive.")] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WebhookDeliveryPage:
    """Those of all runs and, for the role admin, of the inbox; newest first. All conditions must
    hold. `state` and `receiver` search the 10,000 newest deliveries."""
    wanted = DeliveryFilter(state=status, receiver=receiver, since=in_utc(since), until=in_utc(until))
    return page_view(
        await list_deliveries.execute(request.principal, wanted, PageRequest(limit=limit, cursor=cursor)),
        webhook_delivery_view,
    )


@get("/webhook-receivers", summary="List the receivers of webhooks", responses=documented())
async def list_webhook_receivers(
    request: ApiRequest, list_webhook_receivers: NamedDependency[ListWebhookReceivers]
) -> WebhookReceiversView:
    """Receivers of the 10,000 newest deliveries, the last used first. The webhook of the inbox is
    listed for the role admin."""
    found = await list_webhook_receivers.execute(request.principal)
    return {"data": [webhook_receiver_view(each) for each in found]}


@post(
    "/webhook-deliveries/{delivery_id:str}/retry",
    summary="Send a webhook again",
    status_code=202,
    responses=documented(403, 404, 409),
)
async def retry_webhook_delivery(
    request: ApiRequest,
    delivery_id: WebhookDeliveryPath,
    retry_webhook_delivery: NamedDependency[RetryWebhookDelivery],
) -> WebhookDeliveryView:
    """Requires the role operator. Sends at once, with the same `webhook-id` and body, whatever
    the earlier result. A receiver recognizes duplicates by the id."""
    command = RetryWebhookDeliveryCommand(principal=request.principal, delivery_id=WebhookDeliveryId(delivery_id))
    return webhook_delivery_view(await retry_webhook_delivery.execute(command))


@post(
    "/organization/webhook-key",
    summary="Create a new webhook signing key",
    status_code=201,
    responses=documented(403),
)
async def create_webhook_key(
    request: ApiRequest, create_webhook_key: NamedDependency[CreateWebhookKey]
) -> CreatedWebhookKeyView:
    """Requires the role admin. The new key signs at once and is shown only in this response. The
    previous key also signs for 24 hours; older keys no longer do."""
    return created_webhook_key_view(await create_webhook_key.execute(request.principal))
