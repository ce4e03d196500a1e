"""What is left of gateway sessions: calls of dead processes, and connections of sessions that are over."""

from dataclasses import dataclass, replace

import pytest
from pytest_mock import MockerFixture

from application.audit.ports import AuditFilter
from application.gateway.gateway_access import GatewayAccess
from application.gateway.release_ended_sessions import ReleaseEndedSessions
from application.gateway.session_ends import SessionEnds
from application.gateway.settle_lost_calls import SettleLostCalls
from application.identity.authenticate import Authenticate
from application.identity.key_limits import KeyLimits
from application.mcp.ports import ConnectionScope
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.gateway.call import GatewayCall
from domain.gateway.session import SESSION_TOKEN_PREFIX, GatewaySession
from domain.identity.api_key import hash_token
from domain.tools.result import ToolOutcome
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, RUN, after, an_audit_event
from tests.contract.stores import Stores, in_memory_stores
from tests.contract.test_gateway import OWN_THREAD, SESSION, a_call, a_session
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock

TOKEN = f"{SESSION_TOKEN_PREFIX}token"


@dataclass(slots=True, kw_only=True)
class House:
    """A process that serves one session."""

    stores: Stores
    clock: FixedClock
    connections: InMemoryMcpConnections
    access: GatewayAccess
    session: GatewaySession

    @property
    def settle_lost_calls(self) -> SettleLostCalls:
        return SettleLostCalls(
            calls=self.stores.lost_calls,
            ledger=self.stores.gateway_ledger,
            notes=self.stores.expired_notes,
            clock=self.clock,
        )

    @property
    def release_ended(self) -> ReleaseEndedSessions:
        return ReleaseEndedSessions(
            access=self.access,
            sessions=self.stores.gateway_sessions,
            connections=self.connections,
            clock=self.clock,
        )

    @property
    def scope(self) -> ConnectionScope:
        return ConnectionScope(organization_id=ORG, gateway_session_id=self.session.id)

    async def sent(self, number: int, due: float) -> GatewayCall:
        call = replace(a_call(number), due_at=after(due))
        await self.stores.gateway_ledger.intend(call)
        return call

    async def outcomes(self) -> list[ToolOutcome | None]:
        calls = await self.stores.gateway_ledger.calls_of(ORG, SESSION)
        return [None if settlement is None else settlement.result.outcome for _, settlement in calls]


@pytest.fixture
async def house(mocker: MockerFixture) -> House:
    """A session that was let in."""
    wakeups = InProcessWakeups()
    stores = in_memory_stores(InMemoryState(), wakeups)
    clock = FixedClock()
    access = GatewayAccess(
        sessions=stores.gateway_sessions,
        agents=stores.agents,
        authenticate=mocker.create_autospec(Authenticate, instance=True),
        limits=KeyLimits(every=None, clock=clock),
        clock=clock,
        is_told=lambda: True,
        ends=SessionEnds(wakeups=wakeups, clock=clock),
    )
    session = a_session(token_hash=hash_token(TOKEN))
    await stores.gateway_sessions.add(session, an_audit_event(900), thread=OWN_THREAD)
    await access.open(TOKEN)
    return House(stores=stores, clock=clock, connections=InMemoryMcpConnections(), access=access, session=session)


@pytest.mark.requirement("E3", "F5")
async def test_a_call_that_nobody_can_settle_any_more_is_settled_as_unknown_with_its_entry(house: House) -> None:
    await house.sent(1, due=100)
    await house.sent(2, due=300)
    house.clock.advance(200)

    assert await house.settle_lost_calls.execute() == 1
    assert await house.settle_lost_calls.execute() == 0

    assert await house.outcomes() == [ToolOutcome.UNKNOWN, None]
    page = await house.stores.audit.page(ORG, AuditFilter(), PageRequest(limit=9))
    [entry] = [entry for entry in page.items if entry.action is AuditAction.TOOL_FAILED]
    assert (entry.resource, entry.actor) == (a_call(1).id, house.session.created_by)


@pytest.mark.requirement("E3", "F5")
async def test_whoever_has_the_database_alone_settles_all_that_is_open_when_it_starts(house: House) -> None:
    for number in range(1, 251):
        await house.sent(number, due=10_000)

    assert await house.settle_lost_calls.execute(sole_owner=True) == 250

    assert set(await house.outcomes()) == {ToolOutcome.UNKNOWN}


@pytest.mark.requirement("F6")
async def test_connections_of_a_session_close_when_it_has_expired(house: House) -> None:
    assert await house.release_ended.execute() == 0
    assert house.connections.released == []
    house.clock.advance(3600)

    assert await house.release_ended.execute() == 1
    assert await house.release_ended.execute() == 0
    assert house.connections.released == [house.scope]


@pytest.mark.requirement("F6")
async def test_connections_of_a_session_close_when_another_process_has_ended_it(house: House) -> None:
    revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(9))
    await house.stores.gateway_sessions.revoke(ORG, SESSION, revoked)
    house.access.forget_organization(ORG)

    assert await house.release_ended.execute() == 1
    assert house.connections.released == [house.scope]


async def test_a_session_that_another_change_made_unknown_is_kept(house: House) -> None:
    house.access.forget_organization(None)

    assert await house.release_ended.execute() == 0
    assert house.connections.released == []


async def test_connections_that_a_session_has_from_its_run_are_the_runs(house: House, mocker: MockerFixture) -> None:
    of_run = replace(house.session, run_id=RUN)
    access = mocker.create_autospec(GatewayAccess, instance=True)
    access.served.return_value = (of_run,)
    house.access = access
    house.clock.advance(3600)

    assert await house.release_ended.execute() == 1
    access.dropped.assert_called_once_with(of_run.id)
    assert house.connections.released == []
