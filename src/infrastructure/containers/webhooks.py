"""Providers of webhooks."""

from dependency_injector import containers, providers

from application.webhooks.create_webhook_key import CreateWebhookKey
from application.webhooks.deliver_webhooks import DeliverWebhooks
from application.webhooks.ports import WebhookDeliveryStore, WebhookKeyStore, WebhookSender
from application.webhooks.queries import ListWebhookDeliveries
from application.webhooks.retry_webhook_delivery import RetryWebhookDelivery
from application.webhooks.signing_secrets import SigningSecrets
from application.webhooks.webhook_check import WebhookCheck
from infrastructure.assembly import webhooks as webhooks_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.persistence.webhooks.keys import SqlWebhookKeyStore
from infrastructure.persistence.webhooks.store import SqlWebhookDeliveryStore


class Webhooks(containers.DeclarativeContainer):
    webhook_deliveries: providers.Provider[WebhookDeliveryStore] = providers.Singleton(
        SqlWebhookDeliveryStore, database=Storage.database, wakeups=Platform.wakeups, box=Platform.secret_box
    )
    webhook_keys: providers.Provider[WebhookKeyStore] = providers.Singleton(
        SqlWebhookKeyStore, database=Storage.database, box=Platform.secret_box
    )
    webhook_sender: providers.Provider[WebhookSender] = providers.Singleton(
        webhooks_assembly.webhook_sender, Platform.egress_policy, Platform.proxies, Platform.clock
    )
    webhook_check: providers.Provider[WebhookCheck] = providers.Singleton(
        WebhookCheck, outbound=Platform.egress_policy, secrets=Storage.secrets
    )
    signing_secrets: providers.Provider[SigningSecrets] = providers.Singleton(
        SigningSecrets, secrets=Storage.secrets, keys=webhook_keys, clock=Platform.clock, ids=Platform.ids
    )
    deliver_webhooks: providers.Provider[DeliverWebhooks] = providers.Singleton(
        DeliverWebhooks,
        deliveries=webhook_deliveries,
        secrets=signing_secrets,
        sender=webhook_sender,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
    )
    create_webhook_key: providers.Provider[CreateWebhookKey] = providers.Singleton(
        CreateWebhookKey, keys=webhook_keys, secrets=signing_secrets, clock=Platform.clock, ids=Platform.ids
    )
    list_webhook_deliveries: providers.Provider[ListWebhookDeliveries] = providers.Singleton(
        ListWebhookDeliveries, runs=Storage.runs, deliveries=webhook_deliveries
    )
    retry_webhook_delivery: providers.Provider[RetryWebhookDelivery] = providers.Singleton(
        RetryWebhookDelivery, deliveries=webhook_deliveries, clock=Platform.clock, ids=Platform.ids
    )
