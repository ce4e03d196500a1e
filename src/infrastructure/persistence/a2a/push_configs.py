"""Push notification configs of A2A tasks in SQL."""

from sqlalchemy import Connection, bindparam, delete, func, select, update

from application.system.wakeups import Wakeups
from application.webhooks.announcing import state_pushed
from application.webhooks.ports import WEBHOOKS_TOPIC
from domain.a2a.push import MAX_CONFIGS, PushConfig, too_many_configs
from domain.audit.event import AuditEvent
from domain.errors import existing
from domain.ids import OrganizationId, RunId
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.runs.changes import load_run
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import push_config, run, webhook_delivery
from infrastructure.persistence.threads.queue import lock_thread_of
from infrastructure.persistence.webhooks.push_targets import sealed_target, target_of
from infrastructure.persistence.webhooks.rows import add_deliveries

_of_run = push_config.c.run_id == bindparam("of_run")
_of_organization = push_config.c.organization_id == bindparam("of_organization")
_one = (_of_run, push_config.c.id == bindparam("of_config"))
_list = select(push_config).where(_of_organization, _of_run).order_by(push_config.c.id)
_get = select(push_config).where(*_one)
_count = select(func.count()).select_from(push_config).where(_of_run)
_delete = delete(push_config).where(_of_organization, *_one)
_delete_deliveries = delete(webhook_delivery).where(
    webhook_delivery.c.run_id == bindparam("of_run"), webhook_delivery.c.push_config_id == bindparam("of_config")
)
# The row of the run is locked by it: a step that follows sees the config, and one before is seen.
_mark = update(run).where(run.c.id == bindparam("of_run")).values(has_push_configs=True)


class SqlPushConfigStore:
    """The `PushConfigStore` port."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: SecretBox) -> None:
        self._database = database
        self._wakeups = wakeups
        self._box = box

    async def put(self, config: PushConfig, audit: AuditEvent) -> bool:
        sealed = sealed_target(config.target, self._box)
        of_config = {"of_run": config.run_id, "of_config": config.id}

        def unit(connection: Connection) -> bool:
            lock_thread_of(connection, config.run_id)
            connection.execute(_mark, of_config)
            task = existing(load_run(connection, config.organization_id, config.run_id), "run", config.run_id)
            before = connection.execute(_get, of_config).first()
            if before is not None and target_of(before.sealed, self._box) == config.target:
                return False
            if before is None and connection.execute(_count, of_config).scalar_one() >= MAX_CONFIGS:
                raise too_many_configs()
            connection.execute(_delete, {**of_config, "of_organization": config.organization_id})
            connection.execute(_delete_deliveries, of_config)
            connection.execute(
                push_config.insert(),
                {
                    "run_id": config.run_id,
                    "id": config.id,
                    "organization_id": config.organization_id,
                    "receiver": config.target.webhook.receiver,
                    "sealed": sealed,
                    "created_at": config.created_at,
                },
            )
            add_deliveries(connection, state_pushed(task, config))
            record(connection, audit)
            return True

        return await self._database.write(
            unit, scope=config.organization_id, after_commit=lambda _: self._wakeups.wake(WEBHOOKS_TOPIC)
        )

    async def of_run(self, organization_id: OrganizationId, run_id: RunId) -> tuple[PushConfig, ...]:
        wanted = {"of_organization": organization_id, "of_run": run_id}
        rows = await self._database.read(
            lambda connection: connection.execute(_list, wanted).all(), scope=organization_id
        )
        return tuple(self._config_of(row) for row in rows)

    async def remove(self, organization_id: OrganizationId, run_id: RunId, config_id: str, audit: AuditEvent) -> bool:
        of_config = {"of_run": run_id, "of_config": config_id}

        def unit(connection: Connection) -> bool:
            lock_thread_of(connection, run_id)  # a step stores deliveries of configs that it sees
            deleted = connection.execute(_delete, {**of_config, "of_organization": organization_id}).rowcount == 1
            if deleted:
                connection.execute(_delete_deliveries, of_config)
                record(connection, audit)
            return deleted

        return await self._database.write(unit, scope=organization_id)

    def _config_of(self, row: AnyRow) -> PushConfig:
        return PushConfig(
            id=row.id,
            organization_id=row.organization_id,
            run_id=row.run_id,
            target=target_of(row.sealed, self._box),
            created_at=row.created_at,
        )
