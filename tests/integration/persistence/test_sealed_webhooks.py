"""URLs of webhooks at rest: encrypted, whoever stored them, and opened to be requested."""

from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy import Connection, text

from domain.a2a.push import PushConfig, PushTarget
from domain.audit.event import AuditAction
from domain.runs.webhook import Webhook
from domain.secrets.secret import SecretRef
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.persistence.schedules.store import SqlScheduleStore
from infrastructure.persistence.secrets.vault import SqlSecretVault
from infrastructure.persistence.webhooks.store import SqlWebhookDeliveryStore
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, RUN, START, a_run, a_thread, after, an_agent, an_audit_event
from tests.contract.run_steps import finish_step, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import SqliteFiles
from tests.integration.persistence.conftest import add_first_organization
from tests.schedule_builders import a_schedule
from tests.webhook_builders import RECEIVER, URL, a_webhook, announcing

OLD, NEW = "an old passphrase of somebody", "the new passphrase of somebody"
TOKEN = "T0K3N"
HOOK = Webhook(url="https://user:T0K3N@hooks.example.com/T0K3N?t=T0K3N", secret=SecretRef("SIGNING"))

pytestmark = pytest.mark.requirement("B12", "E7")


def stores_over(database: Database, stores: Stores, box: SecretBox) -> Stores:
    """What keeps URLs of webhooks, encrypting with a real box."""
    schedules = SqlScheduleStore(database=database, wakeups=stores.wakeups, box=box)
    return replace(
        stores,
        runs=SqlRunStore(database=database, wakeups=stores.wakeups, box=box),
        schedules=schedules,
        due_schedules=schedules,
        webhooks=SqlWebhookDeliveryStore(database=database, wakeups=stores.wakeups, box=box),
    )


async def a_delivery_and_a_schedule(stores: Stores) -> None:
    """One run that has ended and is announced; one schedule. Both have a webhook."""
    claimed = await start_and_claim(stores, announcing(a_run(), a_webhook(secret="SIGNING")))
    await stores.journal.commit(claimed.lease, finish_step(claimed.run, at=claimed.run.created_at))
    await stores.schedules.add(a_schedule(webhook=HOOK), an_audit_event(7, action=AuditAction.SCHEDULE_CREATED))


async def url_delivered_to(stores: Stores) -> str:
    """Where the one delivery that is due would go."""
    (claimed,) = await stores.webhooks.claim(at=START, until=after(60), limit=9, per_lane=9, busy={})
    assert claimed.webhook is not None
    return claimed.webhook.url


async def everything(database: Database) -> str:
    """All rows that anything of a webhook is stored in."""

    def unit(connection: Connection) -> str:
        tables = (
            "run",
            "run_request",
            "run_event",
            "schedule",
            "webhook_delivery",
            "push_config",
            "audit_event",
            "timer",
        )
        return "".join(
            repr([tuple(_legible(value) for value in row) for row in connection.execute(text(f"SELECT * FROM {name}"))])
            for name in tables
        )

    return await database.read(unit, scope=SYSTEM)


def _legible(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


async def test_the_url_of_a_webhook_stands_nowhere_in_clear(database: Database, stores: Stores) -> None:
    kept = stores_over(database, stores, SecretBox([OLD]))
    await a_delivery_and_a_schedule(kept)
    rows = await everything(database)
    assert RECEIVER in rows
    assert TOKEN not in rows
    stored = await kept.runs.get(ORG, RUN)
    assert stored is not None
    assert stored.webhook == a_webhook(secret="SIGNING").note
    found = await kept.schedules.find(ORG, a_schedule().name)
    assert found is not None
    assert found.webhook == HOOK
    assert await url_delivered_to(kept) == URL


async def test_a_rotation_encrypts_urls_of_webhooks_anew(database: Database, stores: Stores) -> None:
    box = SecretBox([OLD])
    kept = stores_over(database, stores, box)
    await a_delivery_and_a_schedule(kept)
    box.use([NEW, OLD])
    rotated = await SqlSecretVault(database=database, box=box).reencrypt(10)
    assert (rotated.reencrypted, rotated.remaining) == (2, 0)
    box.use([NEW])
    found = await kept.schedules.find(ORG, a_schedule().name)
    assert found is not None
    assert found.webhook == HOOK
    assert await url_delivered_to(kept) == URL


async def test_a_run_without_a_webhook_has_nothing_encrypted(database: Database, stores: Stores) -> None:
    await start_and_claim(stores_over(database, stores, cast(SecretBox, None)))
    assert "webhook" not in await everything(database)


async def test_without_the_key_runs_are_read_and_their_deliveries_set_aside(database: Database, stores: Stores) -> None:
    kept = stores_over(database, stores, SecretBox([OLD]))
    await a_delivery_and_a_schedule(kept)
    lost = stores_over(database, stores, SecretBox([NEW]))
    stored = await lost.runs.get(ORG, RUN)
    assert stored is not None
    assert stored.webhook == a_webhook(secret="SIGNING").note
    assert await lost.webhooks.claim(at=START, until=after(60), limit=9, per_lane=9, busy={}) == ()


async def test_a_file_with_webhooks_holds_no_url_in_clear(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    database = SqliteDatabase(path)
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    kept = stores_over(database, sql_stores(database), SecretBox([OLD]))
    await kept.agents.add(an_agent(), an_audit_event())
    await kept.threads.add(a_thread())
    await a_delivery_and_a_schedule(kept)
    await database.stop()
    files = b"".join(part.read_bytes() for part in path.parent.glob(f"{path.name}*"))
    assert RECEIVER.encode() in files
    assert TOKEN.encode() not in files


@pytest.mark.requirement("X5")
async def test_the_receiver_of_a_push_config_is_encrypted(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    await start_and_claim(stores, a_run())
    target = PushTarget(url=HOOK.url, token=TOKEN, scheme="Bearer", credentials=TOKEN)
    config = PushConfig(id="mine", organization_id=ORG, run_id=RUN, target=target, created_at=START)
    await stores.push_configs.put(config, an_audit_event(8, action=AuditAction.PUSH_CONFIG_CREATED))

    assert await stores.push_configs.of_run(ORG, RUN) == (config,)
    assert TOKEN not in await everything(sqlite)
