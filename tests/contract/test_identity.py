"""The contract of `IdentityStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import ApiKey, hash_token
from domain.identity.role import Role
from domain.ids import ApiKeyId, UserId
from domain.rate_limit import RateLimit
from tests.builders import KEY, ORG, OTHER_ORG, a_key, after, an_audit_event, an_organization, numbered
from tests.contract.paging import all_of
from tests.contract.stores import Stores


def key_number(number: int) -> ApiKey:
    return a_key(ApiKeyId(numbered("key", number)), created_at=after(number))


def created(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.KEY_CREATED)


def revoked(number: int = 2) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.KEY_REVOKED)


async def test_the_first_organization_comes_with_its_key(empty_stores: Stores) -> None:
    key = a_key(token="dgm_first", platform=True)
    assert await empty_stores.identity.bootstrap(an_organization(name="default"), key)
    assert await empty_stores.identity.key_by_hash(hash_token("dgm_first")) == key


async def test_bootstrapping_happens_once(empty_stores: Stores) -> None:
    await empty_stores.identity.bootstrap(an_organization(), key_number(1))
    assert not await empty_stores.identity.bootstrap(an_organization(), key_number(2))
    intruder = replace(key_number(3), organization_id=OTHER_ORG)
    assert not await empty_stores.identity.bootstrap(an_organization(OTHER_ORG), intruder)
    assert await all_of(partial(empty_stores.identity.keys, ORG)) == (key_number(1),)
    assert await empty_stores.identity.key_by_hash(intruder.token_hash) is None


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_a_key_is_found_by_the_hash_of_its_token_and_by_nothing_else(stores: Stores, role: Role) -> None:
    key = a_key(token="dgm_right", role=role)
    await stores.identity.add_key(key, created())
    assert await stores.identity.key_by_hash(hash_token("dgm_right")) == key
    assert await stores.identity.key_by_hash(hash_token("dgm_wrong")) is None
    assert await stores.identity.key_by_hash("dgm_right") is None
    assert await stores.identity.key_by_hash("") is None


@pytest.mark.requirement("C6")
async def test_a_revoked_key_says_so_at_once_and_is_revoked_once(stores: Stores) -> None:
    await stores.identity.add_key(key_number(1), created(1))
    await stores.identity.add_key(key_number(2), created(2))

    assert await stores.identity.revoke_key(ORG, key_number(1).id, revoked(5))
    assert not await stores.identity.revoke_key(ORG, key_number(1).id, revoked(6))

    gone = replace(key_number(1), revoked_at=after(5))
    assert await stores.identity.key_by_hash(gone.token_hash) == gone
    assert await all_of(partial(stores.identity.keys, ORG)) == (key_number(2), gone)
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter()))
    assert entries == (revoked(5), created(2), created(1))


async def test_revoking_an_unknown_key_says_that_there_is_none_and_leaves_no_trace(stores: Stores) -> None:
    assert not await stores.identity.revoke_key(ORG, KEY, revoked())
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == ()


@pytest.mark.requirement("C6")
async def test_another_organizations_key_is_not_listed_and_cannot_be_revoked(stores: Stores) -> None:
    await stores.identity.add_key(a_key(), created())
    assert await all_of(partial(stores.identity.keys, OTHER_ORG)) == ()
    assert not await stores.identity.revoke_key(OTHER_ORG, KEY, revoked())
    assert await stores.identity.key_by_hash(a_key().token_hash) == a_key()


@pytest.mark.requirement("C6")
async def test_when_a_key_ends_and_how_often_it_may_be_used_come_back_as_they_were_stored(stores: Stores) -> None:
    key = replace(a_key(), expires_at=after(60), rate_limit=RateLimit(calls=5, per_s=2.5))
    await stores.identity.add_key(key, created())
    assert await stores.identity.key(ORG, KEY) == key
    assert await stores.identity.key_by_hash(key.token_hash) == key
    assert await stores.identity.key(OTHER_ORG, KEY) is None


async def test_the_latest_use_of_a_key_counts_whatever_comes_last(stores: Stores) -> None:
    for number in (1, 2):
        await stores.identity.add_key(key_number(number), created(number))
    gone = ApiKeyId(numbered("key", 3))
    await stores.identity.record_uses({key_number(1).id: after(20), gone: after(20)})
    await stores.identity.record_uses({key_number(1).id: after(10), key_number(2).id: after(10)})
    assert await stores.identity.key(ORG, key_number(1).id) == replace(key_number(1), last_used_at=after(20))
    assert await stores.identity.key(ORG, key_number(2).id) == replace(key_number(2), last_used_at=after(10))
    assert await stores.identity.key(ORG, gone) is None


async def test_keys_are_listed_newest_first_and_pages_do_not_shift(stores: Stores) -> None:
    for number in (3, 1, 2):
        await stores.identity.add_key(key_number(number), created(number))
    first = await stores.identity.keys(ORG, PageRequest(limit=2))
    await stores.identity.add_key(key_number(4), created(4))
    second = await stores.identity.keys(ORG, PageRequest(limit=2, cursor=first.next_cursor))
    assert (*first.items, *second.items) == (key_number(3), key_number(2), key_number(1))
    assert second.next_cursor is None


@pytest.mark.requirement("P2")
async def test_a_key_keeps_the_person_who_created_it(stores: Stores) -> None:
    key = replace(key_number(7), person_id=UserId("usr_ann"))
    await stores.identity.add_key(key, created(7))
    assert await stores.identity.key(ORG, key.id) == key
    assert await stores.identity.key_by_hash(key.token_hash) == key


@pytest.mark.requirement("P2")
async def test_the_creators_of_many_keys_are_read_together(stores: Stores) -> None:
    made = replace(key_number(7), person_id=UserId("usr_ann"))
    for key, number in ((made, 7), (key_number(8), 8)):
        await stores.identity.add_key(key, created(number))
    ids = [made.id, key_number(8).id, ApiKeyId(numbered("key", 9))]
    assert await stores.identity.creators(ORG, ids) == {made.id: "usr_ann"}
    assert await stores.identity.creators(OTHER_ORG, ids) == await stores.identity.creators(ORG, []) == {}
