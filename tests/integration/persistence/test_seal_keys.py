"""Keys of audit seals over real databases."""

import pytest
from sqlalchemy import select

from infrastructure.persistence.audit.keys import SqlSealKeys
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import audit_key
from infrastructure.secrets.secret_box import SecretBox

pytestmark = pytest.mark.requirement("B12", "C5")

OLD, NEW, NEWEST = "the old passphrase", "the new passphrase", "the newest passphrase"


def keys_of(database: Database, *secrets: str) -> SqlSealKeys:
    return SqlSealKeys(database=database, box=SecretBox(secrets))


async def stored(database: Database) -> set[str]:
    return await database.read(
        lambda connection: set(connection.execute(select(audit_key.c.id)).scalars()), scope=SYSTEM
    )


async def test_the_key_of_the_only_secret_key_is_derived_and_not_stored(database: Database) -> None:
    keys = await keys_of(database, OLD).all()

    assert set(keys.known) == {keys.current.id}
    assert await stored(database) == set()


async def test_keys_of_older_secret_keys_are_known_when_those_are_gone(database: Database) -> None:
    before = (await keys_of(database, OLD).all()).current
    during = await keys_of(database, NEW, OLD).all()
    assert await stored(database) == {before.id}
    await keys_of(database, NEW, OLD).all()  # stores nothing twice

    after = await keys_of(database, NEW).all()

    assert after.current == during.current != before
    assert after.known == {before.id: before, during.current.id: during.current}


async def test_a_stored_key_that_no_secret_key_decrypts_is_unknown(database: Database) -> None:
    lost = await keys_of(database, NEW, OLD).all()

    assert set((await keys_of(database, NEWEST).all()).known).isdisjoint(lost.known)
