"""The contract of `ImpersonationStore`, and impersonations in the list of sessions."""

from dataclasses import replace

import pytest

from application.identity.key_validity import access_topic
from application.identity.ports import SessionFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.console_session import SessionKind
from domain.identity.impersonation import SHOWN_FOR
from domain.ids import ApiKeyId, UserId
from tests.builders import ORG, OTHER_ORG, START, after, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.people_builders import SUPPORT, USER, a_console_session, a_user, an_impersonation

pytestmark = pytest.mark.requirement("P7")
BOB = UserId(numbered("usr", 2))


def audit(number: int, *, at_s: float = 0) -> AuditEvent:
    return replace(an_audit_event(number, action=AuditAction.IMPERSONATION_ENDED), at=after(at_s))


@pytest.fixture
async def people(stores: Stores) -> Stores:
    """Ann and Bob."""
    for number, user in enumerate((a_user(), a_user(BOB, subject="bob"))):
        await stores.user_access.add(user, an_audit_event(number + 50, action=AuditAction.USER_CREATED))
    return stores


async def test_an_impersonation_is_found_by_id_by_token_and_by_its_user(people: Stores) -> None:
    begun, bobs = an_impersonation(), an_impersonation(2, user_id=BOB)
    await people.impersonations.add(begun, audit(1))
    await people.impersonations.add(bobs, audit(2))
    assert await people.impersonations.get(ORG, begun.id) == begun
    assert await people.impersonations.by_hash(begun.token_hash) == begun
    assert await people.impersonations.by_hash("unknown") is None
    assert await people.impersonations.of_user(ORG, USER, since=START) == (begun,)
    assert await people.impersonations.of_user(ORG, USER, since=after(1)) == ()
    assert await people.impersonations.get(OTHER_ORG, begun.id) is None
    assert await people.impersonations.of_user(OTHER_ORG, USER, since=START) == ()


async def test_many_impersonations_hide_none_of_those_before(people: Stores) -> None:
    begun = [an_impersonation(number, began_s=number) for number in range(60)]
    for number, each in enumerate(begun):
        await people.impersonations.add(each, audit(number))
    assert await people.impersonations.of_user(ORG, USER, since=START) == tuple(reversed(begun))


async def test_an_open_impersonation_is_ended_once(people: Stores) -> None:
    first, expired = an_impersonation(), an_impersonation(2)
    await people.impersonations.add(first, audit(1))
    await people.impersonations.add(expired, audit(2))
    assert not await people.impersonations.end(OTHER_ORG, first.id, audit(3))
    async with people.wakeups.subscribe(access_topic(ORG)) as woken:
        assert await people.impersonations.end(ORG, first.id, audit(3, at_s=60))
        assert await woken.wait(0), "who watches as the user is told"
    assert await people.impersonations.get(ORG, first.id) == replace(first, ended_at=after(60))
    assert not await people.impersonations.end(ORG, first.id, audit(4, at_s=61))
    assert not await people.impersonations.end(ORG, expired.id, audit(5, at_s=3_600))


async def test_what_users_are_no_longer_shown_goes_with_the_next_one(people: Stores) -> None:
    old = an_impersonation()
    await people.impersonations.add(old, audit(1))
    await people.impersonations.add(an_impersonation(2, began_s=SHOWN_FOR.total_seconds()), audit(2))
    assert await people.impersonations.get(ORG, old.id) == old
    await people.impersonations.add(an_impersonation(3, began_s=SHOWN_FOR.total_seconds() + 1), audit(3))
    assert await people.impersonations.get(ORG, old.id) is None


async def test_an_open_impersonation_is_in_the_list_of_the_users_sessions(people: Stores) -> None:
    begun, bobs = an_impersonation(began_s=1), an_impersonation(2, user_id=BOB)
    await people.impersonations.add(begun, audit(1))
    await people.impersonations.add(bobs, audit(2))
    await people.console_sessions.add(a_console_session())
    wanted = SessionFilter(at=START, holder=ApiKeyId(USER))
    page = people.console_sessions.page
    listed = (await page(ORG, wanted, PageRequest())).items
    assert [each.id for each in listed] == [begun.id, a_console_session().id]
    assert (listed[0].kind, str(listed[0].actor), listed[0].reason) == (
        SessionKind.IMPERSONATION,
        SUPPORT,
        begun.reason,
    )
    only = replace(wanted, kind=SessionKind.IMPERSONATION)
    assert [each.id for each in (await page(ORG, only, PageRequest())).items] == [begun.id]
    await people.impersonations.end(ORG, begun.id, audit(3, at_s=2))
    assert (await page(ORG, only, PageRequest())).items == ()
