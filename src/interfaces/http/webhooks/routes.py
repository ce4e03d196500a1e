"""Routes of webhook deliveries and of the organization's signing key."""

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.queries import ListInboxDeliveries, ListWebhookDeliveries
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery, RetryWebhookDeliveryCommand
from domain.ids import RunId, WebhookDeliveryId
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import RunPath, WebhookDeliveryPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.webhooks.views import (
    CreatedWebhookKeyView,
    WebhookDeliveryPage,
    WebhookDeliveryView,
    created_webhook_key_view,
    webhook_delivery_view,
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
    """Requires the role admin. Newest first: approvals, questions of workflows, tools and threads in quarantine."""
    return page_view(
        await list_inbox_deliveries.execute(request.principal, PageRequest(limit=limit, cursor=cursor)),
        webhook_delivery_view,
    )


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
