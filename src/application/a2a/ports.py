"""Ports of the A2A slice."""

from typing import Protocol

from domain.a2a.push import PushConfig
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, RunId
from domain.json_value import JsonObject


class PushConfigStore(Protocol):
    """Push notification configs of tasks, encrypted at rest. Every adapter that stores a step of a
    run stores the deliveries of its configs with it (`pushed`)."""

    async def put(self, config: PushConfig, audit: AuditEvent) -> bool:
        """Store a config in place of one with its id, whose deliveries are removed. Where the task
        waits or has ended, its state is to be sent at once. The same config again changes nothing
        and is False.

        Raises NOT_FOUND for an unknown run, and LIMIT `push_configs_limit` beyond MAX_CONFIGS.
        """

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[PushConfig, ...]:
        """The configs of a task by their ids."""

    async def remove(self, organization_id: OrganizationId, run_id: RunId, config_id: str, audit: AuditEvent) -> bool:
        """Remove a config with its deliveries, so that nothing more is sent. False if there is
        none."""


class CardSigner(Protocol):
    """Signs agent cards, if there is a key. Raises INTERNAL `card_key_unusable`."""

    async def signed(self, card: JsonObject, keys_url: str) -> JsonObject:
        """The card with a signature that names `keys_url`; the card as it is without a key."""

    async def keys(self) -> JsonObject:
        """The public keys, as a JSON Web Key Set (RFC 7517)."""
