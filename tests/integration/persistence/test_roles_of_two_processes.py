"""Custom roles where two processes serve their holders on one PostgreSQL database."""

import asyncio
from dataclasses import replace

import pytest

from application.gateway.subscriptions.subscribers import Subscriber
from application.identity.authenticate import AuthenticateCommand
from domain.identity.role import Role
from domain.ids import ApiKeyId
from infrastructure.assembly.storage import subscribers
from tests.builders import ORG, a_key, an_audit_event
from tests.contract.test_gateway import a_session
from tests.integration.persistence.test_rows_kept_by_two_processes import SOON_S, Process, two
from tests.people_builders import USER, a_user
from tests.unit.application.roles.roles import SUPPORT

__all__ = ["two"]


@pytest.mark.requirement("P2")
async def test_a_custom_role_that_is_changed_elsewhere_holds_as_soon_as_that_is_heard(
    two: tuple[Process, Process],
) -> None:
    writer, reader = two
    token = "dgm_with-a-custom-role"
    await writer.stores.custom_roles.add(SUPPORT, an_audit_event(101))
    key = a_key(ApiKeyId("key_support"), token=token, role=Role.VIEWER, custom_role=SUPPORT.name)
    await writer.stores.identity.add_key(key, an_audit_event(102))
    before = await reader.authenticate.execute(AuthenticateCommand(token=token))
    assert before.permissions == frozenset(SUPPORT.permissions)

    told = reader.told_of("custom_role")
    narrowed = replace(SUPPORT, permissions=(), version=2)
    await writer.stores.custom_roles.change(ORG, SUPPORT.name, lambda _: (narrowed, an_audit_event(103)))
    async with asyncio.timeout(SOON_S):
        await told.wait()
    after = await reader.authenticate.execute(AuthenticateCommand(token=token))
    assert after.permissions == frozenset()


@pytest.mark.requirement("P2")
async def test_who_listens_is_checked_again_when_a_user_gets_another_custom_role_elsewhere(
    two: tuple[Process, Process],
) -> None:
    writer, reader = two
    await writer.stores.user_access.add(a_user(role=Role.VIEWER, custom_role="support"), an_audit_event(101))
    woken = asyncio.Event()
    subscriber = Subscriber(a_session(), woken.set)
    subscribers(reader.feed).add(subscriber)
    other = a_user(role=Role.VIEWER, custom_role="other")
    await writer.stores.users.change(ORG, USER, lambda _: (other, an_audit_event(102)))
    async with asyncio.timeout(SOON_S):
        await woken.wait()
    assert subscriber.is_open_unknown
