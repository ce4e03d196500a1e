"""Push configs of A2A tasks in memory."""

from dataclasses import replace

from application.system.wakeups import Wakeups
from application.webhooks.announcing import state_pushed
from application.webhooks.ports import WEBHOOKS_TOPIC
from domain.a2a.push import MAX_CONFIGS, PushConfig, too_many_configs
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.ids import OrganizationId, RunId
from tests.doubles.state import InMemoryState, StoredRun


class InMemoryPushConfigStore:
    """The `PushConfigStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def put(self, config: PushConfig, audit: AuditEvent) -> bool:
        """Store a config, and the state of a task that rests."""
        stored = self._stored(config.organization_id, config.run_id)
        if stored is None:
            raise not_found("run", config.run_id)
        before = stored.push_configs.get(config.id)
        if before is not None and before == replace(config, created_at=before.created_at):
            return False
        if before is None and len(stored.push_configs) >= MAX_CONFIGS:
            raise too_many_configs()
        self._forget_deliveries(config.run_id, config.id)
        stored.push_configs[config.id] = config
        for new in state_pushed(stored.run, config):
            self._state.deliveries[new.delivery.id] = new
        self._state.record(audit)
        self._wakeups.wake(WEBHOOKS_TOPIC)
        return True

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[PushConfig, ...]:
        """The configs of a task by their ids."""
        stored = self._stored(organization_id, run_id)
        return () if stored is None else tuple(config for _, config in sorted(stored.push_configs.items()))

    async def remove(self, organization_id: OrganizationId, run_id: RunId, config_id: str, audit: AuditEvent) -> bool:
        """Remove a config with its deliveries."""
        stored = self._stored(organization_id, run_id)
        if stored is None or stored.push_configs.pop(config_id, None) is None:
            return False
        self._forget_deliveries(run_id, config_id)
        self._state.record(audit)
        return True

    def _stored(self, organization_id: OrganizationId, run_id: RunId) -> StoredRun | None:
        stored = self._state.runs.get(run_id)
        return stored if stored is not None and stored.run.organization_id == organization_id else None

    def _forget_deliveries(self, run_id: RunId, config_id: str) -> None:
        self._state.deliveries = {
            id_: new
            for id_, new in self._state.deliveries.items()
            if (new.delivery.run_id, new.delivery.push_config_id) != (run_id, config_id)
        }
