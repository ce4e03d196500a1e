"""What a sign-in writes about groups: only what has changed."""

import pytest
from sqlalchemy import Connection

from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import ORG, an_audit_event
from tests.contract.sql_legs import sql_stores
from tests.contract.test_organization_groups import GROUP, SECOND, a_group
from tests.people_builders import a_provider, a_user

pytestmark = pytest.mark.requirement("P2")


async def test_a_sign_in_that_says_the_same_of_groups_writes_nothing(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.identity_providers.add(a_provider(), an_audit_event(1))
    user = await stores.user_access.add(a_user(), an_audit_event(2))
    await stores.organization_groups.add(a_group(), an_audit_event(3))
    await stores.organization_groups.add(a_group(SECOND, name="Others"), an_audit_event(4))

    async def changes() -> int:
        def unit(connection: Connection) -> int:
            count: int = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
            return count

        return await sqlite.write(unit, scope=ORG)

    await stores.organization_groups.set_claimed(user, [GROUP])
    before = await changes()
    await stores.organization_groups.set_claimed(user, [GROUP])
    assert await changes() == before
    await stores.organization_groups.set_claimed(user, [SECOND])
    assert await stores.organization_groups.groups_of(ORG, user.id) == {"Others"}
    assert await changes() == before + 2
