"""The contract of `OrganizationStore`."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import ApiKeyId, OrganizationId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.limits import LimitSettings
from tests.builders import ORG, OTHER_ORG, a_key, after, an_audit_event, an_organization, numbered
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
    await stores.organizations.save(changed, expected_version=1, audit=(updated(),))
    assert await stores.organizations.get(ORG) == changed
    assert await stores.organizations.get(OTHER_ORG) == an_organization(OTHER_ORG)
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (updated(),)


async def test_a_change_of_what_one_has_not_seen_is_refused(stores: Stores) -> None:
    changed = replace(an_organization(ORG), mcp_enabled=False, version=2)
    await stores.organizations.save(changed, expected_version=1, audit=(updated(1),))
    with pytest.raises(ServiceError) as refused:
        await stores.organizations.save(an_organization(ORG, name="mine"), expected_version=1, audit=(updated(2),))
    assert (refused.value.code, refused.value.kind) == ("version_conflict", ErrorKind.PRECONDITION)
    with pytest.raises(ServiceError) as missing:
        await stores.organizations.save(an_organization(NOWHERE), expected_version=1, audit=(updated(3),))
    assert (missing.value.code, missing.value.kind) == ("organization_not_found", ErrorKind.NOT_FOUND)
    assert await stores.organizations.get(ORG) == changed
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == (updated(1),)


async def test_an_organization_is_stored_with_its_first_key_and_what_is_said_of_both(stores: Stores) -> None:
    new = replace(an_organization(NOWHERE), name="Acme", created_at=after(5))
    key = a_key(ApiKeyId(numbered("key", 9)), organization_id=NOWHERE)
    entries = (updated(1), replace(updated(2), organization_id=NOWHERE))
    await stores.organizations.add(new, key, entries)
    assert await stores.organizations.get(NOWHERE) == new
    assert await stores.identity.key_by_hash(key.token_hash) == key
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == entries[:1]
    assert await all_of(partial(stores.audit.page, NOWHERE, AuditFilter())) == entries[1:]


async def test_a_further_key_is_stored_with_what_is_said_of_it_in_both_trails(stores: Stores) -> None:
    key = a_key(ApiKeyId(numbered("key", 9)), organization_id=OTHER_ORG)
    entries = (updated(1), replace(updated(2), organization_id=OTHER_ORG))
    await stores.organizations.add_key(key, entries)
    assert await stores.identity.key_by_hash(key.token_hash) == key
    assert await stores.identity.key(ORG, key.id) is None
    assert await all_of(partial(stores.audit.page, ORG, AuditFilter())) == entries[:1]
    assert await all_of(partial(stores.audit.page, OTHER_ORG, AuditFilter())) == entries[1:]


async def test_organizations_are_listed_newest_first_and_the_first_one_stays_it(stores: Stores) -> None:
    new = replace(an_organization(NOWHERE), created_at=after(5))
    await stores.organizations.add(new, a_key(organization_id=NOWHERE), ())
    listed = await all_of(stores.organizations.page)
    assert listed == (new, an_organization(OTHER_ORG), an_organization(ORG))
    assert await stores.organizations.first() == an_organization(ORG)


async def test_before_the_first_start_there_is_no_first_organization(empty_stores: Stores) -> None:
    assert await empty_stores.organizations.first() is None


@pytest.mark.requirement("C1")
async def test_settings_of_an_organization_are_read_as_they_were_stored(stores: Stores) -> None:
    rule = ToolRule(decision=Verdict.DENY, arguments_schema={"maxProperties": 1}, timeout_s=1.5, overridable=True)
    changed = replace(
        an_organization(ORG),
        version=2,
        tool_allowlist=("mcp__git__*",),
        tool_policies=ToolPolicies(rules=(("mcp__git__push", rule), ("*", ToolRule(allowed_params=())))),
        models=("openai:gpt-5-mini",),
        limits=LimitSettings(max_turns=3, max_cost_usd=Decimal("0.25")),
        daily_budget_usd=Decimal("12.50"),
        retention_days=30,
    )
    await stores.organizations.save(changed, expected_version=1, audit=(updated(),))
    assert await stores.organizations.get(ORG) == changed
    nothing = replace(changed, version=3, tool_allowlist=())
    await stores.organizations.save(nothing, expected_version=2, audit=(updated(2),))
    assert await stores.organizations.get(ORG) == nothing
