"""The contract of `GatewayClientStore`."""

import asyncio

import pytest

from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import MAX_SUBSCRIPTIONS, ClientSettings, GatewayClient
from domain.ids import GatewayClientId, GatewaySessionId
from domain.mcp.log_level import LogLevel
from tests.builders import ORG, OTHER_ORG, after, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD, SESSION, a_session


def a_client(number: int = 1, *, session_id: GatewaySessionId = SESSION) -> GatewayClient:
    return GatewayClient(
        id=GatewayClientId(numbered("gwc", number)),
        organization_id=ORG,
        session_id=session_id,
        version="2025-11-25",
        capabilities={"elicitation": {}},
    )


async def with_a_session(stores: Stores) -> None:
    created = an_audit_event(1, action=AuditAction.GATEWAY_SESSION_CREATED)
    await stores.gateway_sessions.add(a_session(), created, thread=OWN_THREAD)


@pytest.mark.requirement("F5")
async def test_what_a_client_asked_for_is_kept_for_itself_and_its_organization(stores: Stores) -> None:
    await with_a_session(stores)
    client, other = a_client(1), a_client(2)
    assert await stores.gateway_clients.settings(ORG, client.id) == ClientSettings()

    await stores.gateway_clients.change(client, lambda known: known.with_log_level(LogLevel.NOTICE))
    changed = await stores.gateway_clients.change(client, lambda known: known.subscribed("mcp+files:file:///a"))

    assert changed == ClientSettings(log_level=LogLevel.NOTICE, subscriptions=("mcp+files:file:///a",))
    assert await stores.gateway_clients.settings(ORG, client.id) == changed
    assert await stores.gateway_clients.settings(OTHER_ORG, client.id) == ClientSettings()
    assert await stores.gateway_clients.settings(ORG, other.id) == ClientSettings()


@pytest.mark.requirement("F5")
async def test_changes_that_come_together_are_all_kept(stores: Stores) -> None:
    await with_a_session(stores)
    client, uris = a_client(), [f"file:///{number}" for number in range(5)]

    await asyncio.gather(
        *(stores.gateway_clients.change(client, lambda known, uri=uri: known.subscribed(uri)) for uri in uris)  # type: ignore[misc]
    )
    await stores.gateway_clients.change(client, lambda known: known.unsubscribed("file:///3"))

    kept = await stores.gateway_clients.settings(ORG, client.id)
    assert sorted(kept.subscriptions) == ["file:///0", "file:///1", "file:///2", "file:///4"]


@pytest.mark.requirement("F5")
async def test_a_client_that_has_ended_asks_for_nothing_any_more(stores: Stores) -> None:
    await with_a_session(stores)
    client = a_client()
    await stores.gateway_clients.change(client, lambda known: known.subscribed("file:///a"))

    ended = await stores.gateway_clients.change(client, lambda known: known.ended(after(9)))
    later = await stores.gateway_clients.change(client, lambda known: known.with_log_level(LogLevel.DEBUG))

    assert ended == ClientSettings(ended_at=after(9))
    assert later is None
    assert await stores.gateway_clients.settings(ORG, client.id) == ended


async def test_a_change_that_is_refused_changes_nothing(stores: Stores) -> None:
    await with_a_session(stores)
    client = a_client()
    for number in range(MAX_SUBSCRIPTIONS):
        await stores.gateway_clients.change(client, lambda known, number=number: known.subscribed(f"file:///{number}"))  # type: ignore[misc]

    with pytest.raises(ServiceError) as refused:
        await stores.gateway_clients.change(client, lambda known: known.subscribed("file:///one-more"))
    assert (refused.value.code, refused.value.kind) == ("too_many_subscriptions", ErrorKind.INVALID)
    again = await stores.gateway_clients.change(client, lambda known: known.subscribed("file:///0"))
    assert again is not None
    assert len(again.subscriptions) == MAX_SUBSCRIPTIONS


async def test_a_client_of_a_session_that_is_not_there_cannot_be_stored(stores: Stores) -> None:
    client = a_client(session_id=GatewaySessionId(numbered("gws", 99)))
    with pytest.raises(ServiceError) as refused:
        await stores.gateway_clients.change(client, lambda known: known.subscribed("file:///a"))
    assert refused.value.code == "gateway_session_not_found"
