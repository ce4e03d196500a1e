"""What a session's row is read with: the own limit of the key that opened it."""

from dataclasses import replace

import pytest

from domain.rate_limit import RateLimit
from tests.builders import a_key, an_audit_event
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD, a_session, created


@pytest.mark.requirement("F5")
async def test_a_session_is_read_with_the_limit_of_the_key_that_opened_it(stores: Stores) -> None:
    key = replace(a_key(), rate_limit=RateLimit(calls=7, per_s=2.5))
    await stores.identity.add_key(key, an_audit_event(90))
    session = a_session(created_by=key.id)
    await stores.gateway_sessions.add(session, created(), thread=OWN_THREAD)

    read = await stores.gateway_sessions.by_token_hash("hash-1")

    assert read == replace(session, rate_limit=RateLimit(calls=7, per_s=2.5))
    assert read == await stores.gateway_sessions.get(session.organization_id, session.id)
