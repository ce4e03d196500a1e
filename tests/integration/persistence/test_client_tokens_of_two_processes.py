"""The token of an OAuth client where two processes serve the gateway on one PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from domain.errors import ServiceError
from domain.gateway.session import SESSION_TOKEN_PREFIX
from domain.identity.api_key import hash_token
from domain.identity.user import UserStatus
from domain.ids import ApiKeyId
from tests.builders import ORG, an_audit_event
from tests.contract.test_gateway import OWN_THREAD, a_session
from tests.databases import PostgresDatabases
from tests.gateway_builders import CLIENT, a_client_grant
from tests.integration.persistence.test_rows_kept_by_two_processes import SOON_S, Process, process
from tests.people_builders import PROVIDER, USER, a_provider, a_user

pytestmark = pytest.mark.requirement("P5")


@pytest.fixture
async def two(postgres_databases: PostgresDatabases) -> AsyncIterator[tuple[Process, Process]]:
    """Two processes on a database with an organization."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_databases.fresh())
        writer = await stack.enter_async_context(process(url, "writer", ORG))
        yield writer, await stack.enter_async_context(process(url, "reader"))


@pytest.mark.parametrize("table", ["gateway_session", "user_account", "identity_provider"])
async def test_the_token_of_a_client_is_refused_as_soon_as_it_is_heard_that_it_was_renewed_or_its_person_lost_access(
    two: tuple[Process, Process], table: str
) -> None:
    writer, reader = two
    token = f"{SESSION_TOKEN_PREFIX}of-a-client"
    far = datetime(2999, 1, 1, tzinfo=UTC)
    session = a_session(
        token_hash=hash_token(token),
        expires_at=far,
        token_expires_at=far,
        created_by=ApiKeyId(USER),
        client_id=CLIENT,
    )
    stores = writer.stores
    await stores.identity_providers.add(a_provider(), an_audit_event(7))
    await stores.user_access.add(a_user(), an_audit_event(8))
    await stores.client_grants.add(a_client_grant(session.id), session, an_audit_event(9), thread=OWN_THREAD)
    assert await reader.gateway.open(token) == session
    told = reader.told_of(table)
    if table == "gateway_session":
        assert await stores.client_grants.change(
            ORG, session.id, lambda grant, stored: (grant, replace(stored, token_hash=hash_token("dgs_next")))
        )
    elif table == "user_account":
        ended = an_audit_event(10)
        await stores.users.change(ORG, USER, lambda user: (replace(user, status=UserStatus.DEACTIVATED), ended))
    else:
        assert await stores.identity_providers.delete(ORG, PROVIDER, an_audit_event(10))
    async with asyncio.timeout(SOON_S):
        await told.wait()
    with pytest.raises(ServiceError) as refused:
        await reader.gateway.open(token)
    assert refused.value.code == "token_invalid"
