"""The contract of `ConsoleSessionStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.identity.ports import SessionFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.console_session import MAX_SESSIONS, SESSION_LASTS, SessionKind
from domain.ids import ApiKeyId
from tests.builders import ORG, OTHER_ORG, START, after, an_agent, an_audit_event
from tests.contract.paging import all_of
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD, a_session
from tests.people_builders import USER, a_console_session

pytestmark = pytest.mark.requirement("P2")
EVERYBODY = SessionFilter(at=START)
BOB = "usr_bob"


def audit(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.SESSION_ENDED)


async def test_a_session_comes_back_until_it_is_ended_once(stores: Stores) -> None:
    session = a_console_session()
    await stores.console_sessions.add(session)
    assert await stores.console_sessions.get(ORG, session.id) == session
    assert await stores.console_sessions.get(OTHER_ORG, session.id) is None
    assert not await stores.console_sessions.end(OTHER_ORG, session.id, audit())

    assert await stores.console_sessions.end(ORG, session.id, audit())

    assert await stores.console_sessions.get(ORG, session.id) is None
    assert not await stores.console_sessions.end(ORG, session.id, audit(2))
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (audit(),)


async def test_only_a_later_time_is_stored_as_the_last_one(stores: Stores) -> None:
    session = a_console_session(began_s=60)
    await stores.console_sessions.add(session)
    for at, last in ((after(30), after(60)), (after(120), after(120)), (after(90), after(120))):
        await stores.console_sessions.saw(ORG, session.id, at)
        [listed] = (await stores.console_sessions.page(ORG, EVERYBODY, PageRequest())).items
        assert listed.last_seen_at == last


async def test_sessions_are_listed_by_holder_newest_first_without_expired_ones(stores: Stores) -> None:
    first, second = a_console_session(1), a_console_session(2, began_s=1)
    others = a_console_session(3, holder=BOB, began_s=2)
    for session in (first, second, others, a_console_session(4, organization_id=OTHER_ORG)):
        await stores.console_sessions.add(session)
    page = stores.console_sessions.page
    assert [each.id for each in await all_of(partial(page, ORG, EVERYBODY))] == [others.id, second.id, first.id]
    theirs = SessionFilter(at=START, holder=ApiKeyId(USER))
    assert [each.id for each in (await page(ORG, theirs, PageRequest())).items] == [second.id, first.id]
    at_the_end = SessionFilter(at=START + SESSION_LASTS, holder=ApiKeyId(USER))
    [listed] = (await page(ORG, at_the_end, PageRequest())).items
    assert (listed.id, listed.kind, str(listed.holder)) == (second.id, SessionKind.CONSOLE, USER)
    assert (listed.address, listed.user_agent, listed.client_name) == ("192.0.2.1", "Firefox", None)


async def test_clients_that_a_person_admitted_are_in_the_list_until_they_are_revoked(stores: Stores) -> None:
    await stores.agents.add(an_agent(), an_audit_event(1, action=AuditAction.AGENT_CREATED))
    granted = replace(
        a_session(1), created_by=ApiKeyId(USER), client_id="https://client.example", client_name="An editor"
    )
    for number, session in enumerate((granted, replace(a_session(2), created_by=ApiKeyId(USER)))):
        await stores.gateway_sessions.add(
            session, an_audit_event(number + 2, action=AuditAction.GATEWAY_SESSION_CREATED), thread=OWN_THREAD
        )
    await stores.console_sessions.add(a_console_session())

    wanted = SessionFilter(at=START, holder=ApiKeyId(USER))
    listed = {each.id: each for each in (await stores.console_sessions.page(ORG, wanted, PageRequest())).items}

    assert set(listed) == {a_console_session().id, granted.id}
    client = listed[granted.id]
    assert (client.kind, client.client_name, client.last_seen_at) == (SessionKind.CLIENT, "An editor", None)
    revoked = an_audit_event(9, action=AuditAction.GATEWAY_SESSION_REVOKED)
    assert await stores.gateway_sessions.revoke(ORG, granted.id, revoked)
    left = (await stores.console_sessions.page(ORG, wanted, PageRequest())).items
    assert [each.id for each in left] == [a_console_session().id]


async def test_a_new_session_drops_expired_ones_and_the_oldest_of_its_holder(stores: Stores) -> None:
    old = a_console_session(0, holder=BOB)
    await stores.console_sessions.add(old)
    began_s = SESSION_LASTS.total_seconds()
    await stores.console_sessions.add(a_console_session(1, holder=BOB, began_s=began_s - 1))
    for number in range(MAX_SESSIONS):
        await stores.console_sessions.add(a_console_session(number + 2, began_s=began_s + number))
    assert await stores.console_sessions.get(ORG, old.id) is None
    first, second = a_console_session(2), a_console_session(3)
    assert await stores.console_sessions.get(ORG, first.id) is not None
    await stores.console_sessions.add(a_console_session(MAX_SESSIONS + 2, began_s=began_s + MAX_SESSIONS))
    assert await stores.console_sessions.get(ORG, first.id) is None
    for left in (second.id, a_console_session(1).id):
        assert await stores.console_sessions.get(ORG, left) is not None
