"""The contract of `OrganizationStore`."""

from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from tests.builders import ORG, OTHER_ORG, an_audit_event, an_organization, numbered
from tests.contract.paging import all_of
from tests.contract.stores import Stores

NOWHERE = OrganizationId(numbered("org", 9))


def updated(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.ORGANIZATION_UPDATED)


async def test_an_organization_is_read_as_it_was_stored(stores: Stores) -> None:
    assert await stores.organizations.get(ORG) == an_organization(ORG)
    assert await stores.organizations.get(NOWHERE) is None


@pytest.mark.requirement("B14", "C6")
async def test_a_change_holds_from_the_next_read_on_and_for_no_other_organization(stores: Stores) -> None:
    assert await stores.organizations.get(ORG) == an_organization(ORG)
    changed = replace(an_organization(ORG), name="Ümlaut & Söhne", mcp_enabled=False, version=2)
    await stores.organizations.save(changed, expected_version=1, audit=updated())
    assert await stores.organizations.get(ORG) == changed
    assert await stores.organizations.get(OTHER_ORG) == an_organization(OTHER_ORG)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (updated(),)


async def test_a_change_of_what_one_has_not_seen_is_refused(stores: Stores) -> None:
    changed = replace(an_organization(ORG), mcp_enabled=False, version=2)
    await stores.organizations.save(changed, expected_version=1, audit=updated(1))
    with pytest.raises(ServiceError) as refused:
        await stores.organizations.save(an_organization(ORG, name="mine"), expected_version=1, audit=updated(2))
    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    with pytest.raises(ServiceError) as missing:
        await stores.organizations.save(an_organization(NOWHERE), expected_version=1, audit=updated(3))
    assert (missing.value.code, missing.value.kind) == ("organization_not_found", ErrorKind.NOT_FOUND)
    assert await stores.organizations.get(ORG) == changed
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (updated(1),)
