"""Providers of webhooks."""

from dependency_injector import containers, providers

from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.deliver_webhooks import DeliverWebhooks
from application.webhooks.ports import DeliveryReports, WebhookDeliveryStore, WebhookKeyStore, WebhookSender
from application.webhooks.queries import (
    ListDeliveries,
    ListInboxDeliveries,
    ListWebhookDeliveries,
    ListWebhookReceivers,
)
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery
from application.webhooks.signing_secrets import SigningSecrets
from application.webhooks.webhook_check import WebhookCheck
from infrastructure.assembly import webhooks as webhooks_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.persistence.webhooks.keys import SqlWebhookKeyStore
from infrastructure.persistence.webhooks.reports import SqlDeliveryReports
from infrastructure.persistence.webhooks.store import SqlWebhookDeliveryStore

singleton = Singletons(Platform, Storage)


class Webhooks(containers.DeclarativeContainer):
    webhook_deliveries: providers.Provider[WebhookDeliveryStore] = singleton(
        SqlWebhookDeliveryStore, box=Platform.secret_box
    )
    delivery_reports: providers.Provider[DeliveryReports] = singleton(SqlDeliveryReports)
    webhook_keys: providers.Provider[WebhookKeyStore] = singleton(SqlWebhookKeyStore, box=Platform.secret_box)
    webhook_sender: providers.Provider[WebhookSender] = singleton(
        webhooks_assembly.webhook_sender, Platform.egress_policy, Platform.proxies, Platform.clock
    )
    webhook_check = singleton(WebhookCheck, outbound=Platform.egress_policy)
    signing_secrets = singleton(SigningSecrets, keys=webhook_keys)
    deliver_webhooks = singleton(
        DeliverWebhooks,
        deliveries=webhook_deliveries,
        secrets=signing_secrets,
        sender=webhook_sender,
        address=Platform.public_address,
    )
    create_webhook_key = singleton(CreateWebhookKey, keys=webhook_keys, secrets=signing_secrets)
    list_webhook_deliveries = singleton(ListWebhookDeliveries, deliveries=webhook_deliveries)
    list_deliveries = singleton(ListDeliveries, delivery_reports=delivery_reports)
    list_webhook_receivers = singleton(ListWebhookReceivers, delivery_reports=delivery_reports)
    list_inbox_deliveries = singleton(ListInboxDeliveries, deliveries=webhook_deliveries)
    retry_webhook_delivery = singleton(RetryWebhookDelivery, deliveries=webhook_deliveries)
