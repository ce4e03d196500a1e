"""The contract of `GatewaySessionStore` and `GatewayLedger`."""

import asyncio
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewayCall, GatewayCallState, GatewaySettlement
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import ApiKeyId, GatewaySessionId, OrganizationId, RunId, ThreadId, ToolCallId
from domain.threads.thread import Quarantine, Thread
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    START,
    THREAD,
    a_thread,
    after,
    an_agent,
    an_audit_event,
    numbered,
)
from tests.contract.paging import all_of
from tests.contract.run_steps import finish_step, start_and_claim
from tests.contract.stores import Stores

SESSION = GatewaySessionId(numbered("gws", 1))
OWN_THREAD = Thread(id=ThreadId(numbered("thr", 77)), organization_id=ORG, metadata={}, created_at=START)


def a_session(number: int = 1, **changes: object) -> GatewaySession:
    session = GatewaySession(
        id=GatewaySessionId(numbered("gws", number)),
        organization_id=ORG,
        agent_id=AGENT,
        thread_id=OWN_THREAD.id,
        names=ToolNames.NAMESPACED,
        token_hash=f"hash-{number}",
        created_by=KEY,
        created_at=after(number),
        expires_at=after(3600),
    )
    return replace(session, **changes)  # type: ignore[arg-type]


def a_call(number: int = 1, *, name: str = "mcp__clock__now") -> GatewayCall:
    return GatewayCall(
        id=ToolCallId(numbered("call", number)),
        session_id=SESSION,
        organization_id=ORG,
        name=name,
        type=ToolType.MCP_TOOL,
        server_id=None,
        params={"zone": "UTC"},
        recorded_at=after(number),
    )


def settled(call: GatewayCall, result: ToolResult | None = None) -> GatewaySettlement:
    return GatewaySettlement(call=call, result=result or ToolResult.succeeded("noon"), duration_ms=7, at=after(50))


def created(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.GATEWAY_SESSION_CREATED)


def executed(number: int = 100) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.TOOL_EXECUTED)


async def opened(stores: Stores) -> GatewaySession:
    session = a_session()
    await stores.gateway_sessions.add(session, created(), thread=OWN_THREAD)
    return session


async def audited(stores: Stores) -> list[AuditAction]:
    page = await stores.audit.page(ORG, AuditFilter(), PageRequest(limit=100))
    return sorted(entry.action for entry in page.items)


@pytest.mark.requirement("F5")
async def test_a_session_is_found_by_its_tokens_hash_and_by_id_in_its_own_organization(stores: Stores) -> None:
    session = await opened(stores)

    assert await stores.gateway_sessions.by_token_hash("hash-1") == session
    assert await stores.gateway_sessions.by_token_hash("hash-2") is None
    assert await stores.gateway_sessions.get(ORG, SESSION) == session
    assert await stores.gateway_sessions.get(OTHER_ORG, SESSION) is None
    assert await stores.threads.get(ORG, OWN_THREAD.id) == OWN_THREAD
    assert await audited(stores) == [AuditAction.GATEWAY_SESSION_CREATED]


@pytest.mark.requirement("F5")
async def test_a_revoked_session_is_read_as_such_and_revoked_once(stores: Stores) -> None:
    await opened(stores)
    revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(9))

    assert not await stores.gateway_sessions.revoke(OTHER_ORG, SESSION, revoked)
    assert await stores.gateway_sessions.revoke(ORG, SESSION, revoked)
    assert not await stores.gateway_sessions.revoke(ORG, SESSION, replace(revoked, id=created(3).id))

    stored = await stores.gateway_sessions.by_token_hash("hash-1")
    assert stored is not None
    assert stored.revoked_at == after(9)
    assert await audited(stores) == [AuditAction.GATEWAY_SESSION_CREATED, AuditAction.GATEWAY_SESSION_REVOKED]


@pytest.mark.requirement("C6")
async def test_open_sessions_of_a_key_are_found(stores: Stores) -> None:
    await opened(stores)

    async def found(organization_id: OrganizationId = ORG, key_id: ApiKeyId = KEY, at: datetime = START) -> int:
        sessions = stores.gateway_sessions
        return len(await sessions.open_of_key(organization_id, key_id, at=at, limit=10))

    assert await stores.gateway_sessions.open_of_key(ORG, KEY, at=START, limit=10) == (SESSION,)
    assert await stores.gateway_sessions.open_of_key(ORG, KEY, at=START, limit=0) == ()
    assert await found(organization_id=OTHER_ORG) == await found(key_id=ApiKeyId("key_other")) == 0
    assert await found(at=after(3600)) == 0
    revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(9))
    await stores.gateway_sessions.revoke(ORG, SESSION, revoked)
    assert await found() == 0


async def test_a_session_that_has_expired_cannot_be_revoked(stores: Stores) -> None:
    await opened(stores)

    late = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(3600))
    assert not await stores.gateway_sessions.revoke(ORG, SESSION, late)


@pytest.mark.requirement("F6")
async def test_a_session_of_a_run_ends_with_the_run(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    await stores.agents.add(an_agent(), an_audit_event(200))
    claimed = await start_and_claim(stores)
    session = a_session(thread_id=THREAD, run_id=RUN)
    await stores.gateway_sessions.add(session, created(), thread=None)
    assert await stores.gateway_sessions.get(ORG, SESSION) == session

    await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    run = await stores.runs.get(ORG, RUN)
    assert run is not None
    assert run.finished_at is not None

    ended = await stores.gateway_sessions.by_token_hash("hash-1")
    assert ended is not None
    assert ended.revoked_at == run.finished_at
    revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(60))
    assert not await stores.gateway_sessions.revoke(ORG, SESSION, revoked)


async def test_sessions_are_listed_newest_first_without_those_that_have_no_token(stores: Stores) -> None:
    for number in (1, 2, 3):
        await stores.gateway_sessions.add(a_session(number), created(number), thread=OWN_THREAD)
    await stores.gateway_sessions.keep(a_session(4, token_hash=None), thread=OWN_THREAD)

    listed = await all_of(partial(stores.gateway_sessions.page, ORG))
    assert [session.id for session in listed] == [numbered("gws", number) for number in (3, 2, 1)]
    assert await all_of(partial(stores.gateway_sessions.page, OTHER_ORG)) == ()


async def test_the_session_of_a_key_is_made_once(stores: Stores) -> None:
    first = a_session(token_hash=None)
    assert await stores.gateway_sessions.keep(first, thread=OWN_THREAD) == first
    assert await stores.gateway_sessions.keep(replace(first, created_at=after(500)), thread=OWN_THREAD) == first


@pytest.mark.requirement("F5", "E3")
async def test_a_call_is_recorded_and_settled_once_with_its_audit_entry(stores: Stores) -> None:
    await opened(stores)
    call = a_call()

    assert await stores.gateway_ledger.intend(call)
    assert await stores.gateway_ledger.calls_of(ORG, SESSION) == ((call, None),)
    assert await stores.gateway_ledger.settle(settled(call), executed())
    assert not await stores.gateway_ledger.settle(settled(call, ToolResult.failed("late", "late")), executed(101))

    ((stored, outcome),) = await stores.gateway_ledger.calls_of(ORG, SESSION)
    assert stored == replace(call, state=GatewayCallState.SETTLED)
    assert outcome is not None
    assert (outcome.result.error_code, outcome.duration_ms, outcome.at) == (None, 7, after(50))
    assert await audited(stores) == [AuditAction.GATEWAY_SESSION_CREATED, AuditAction.TOOL_EXECUTED]
    assert await stores.gateway_ledger.calls_of(OTHER_ORG, SESSION) == ()


async def test_a_refused_call_is_stored_with_what_was_said(stores: Stores) -> None:
    await opened(stores)
    refusal = ToolResult.blocked("tool_denied", "no")

    await stores.gateway_ledger.refuse(settled(a_call(), refusal), an_audit_event(100, action=AuditAction.TOOL_BLOCKED))

    ((_, outcome),) = await stores.gateway_ledger.calls_of(ORG, SESSION)
    assert outcome is not None
    assert outcome.result == refusal


@pytest.mark.requirement("C2", "F5")
async def test_no_more_calls_of_a_tool_are_recorded_than_policy_lets_a_session_make(stores: Stores) -> None:
    await opened(stores)
    await stores.gateway_ledger.refuse(settled(a_call(9), ToolResult.blocked("x", "no")), executed(109))
    for number, code in enumerate(("tool_not_found", "tool_arguments_invalid"), 10):
        await stores.gateway_ledger.refuse(
            settled(a_call(number), ToolResult.failed(code, "no")), executed(100 + number)
        )
    await stores.gateway_ledger.intend(a_call(8, name="another"), max_calls=1)

    recorded = await asyncio.gather(
        *(stores.gateway_ledger.intend(a_call(number), max_calls=2) for number in range(1, 6))
    )

    assert sorted(recorded) == [False, False, False, True, True]
    calls = await stores.gateway_ledger.calls_of(ORG, SESSION)
    assert len([call for call, _ in calls if call.name == "mcp__clock__now"]) == 5
    assert [await stores.gateway_ledger.call_of(ORG, SESSION, call.id) for call, _ in calls] == list(calls)
    assert await stores.gateway_ledger.call_of(OTHER_ORG, SESSION, calls[0][0].id) is None
    assert await stores.gateway_ledger.call_of(ORG, GatewaySessionId(numbered("gws", 2)), calls[0][0].id) is None


async def test_calls_of_many_callers_are_stored_together_and_each_hears_of_its_own(stores: Stores) -> None:
    await opened(stores)
    calls = [a_call(number) for number in range(1, 41)]
    orphan = replace(a_call(99), session_id=GatewaySessionId(numbered("gws", 99)))

    answers = await asyncio.gather(
        *(stores.gateway_ledger.intend(call) for call in (*calls, orphan)), return_exceptions=True
    )

    assert answers[:-1] == [True] * 40
    refused = answers[-1]
    assert isinstance(refused, ServiceError)
    assert (refused.code, refused.kind) == ("gateway_session_not_found", ErrorKind.NOT_FOUND)
    await stores.gateway_ledger.settle(settled(calls[0]), executed(99))
    again = await asyncio.gather(
        *(stores.gateway_ledger.settle(settled(call), executed(100 + n)) for n, call in enumerate(calls))
    )
    assert again == [False] + [True] * 39
    assert [call.id for call, _ in await stores.gateway_ledger.calls_of(ORG, SESSION)] == [call.id for call in calls]
    assert (await audited(stores)).count(AuditAction.TOOL_EXECUTED) == 40


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_call_with_a_canary_ends_its_session_and_puts_the_thread_in_quarantine(
    stores: Stores, *, is_recorded: bool
) -> None:
    await opened(stores)
    if is_recorded:
        await stores.gateway_ledger.intend(a_call())
    quarantine = Quarantine(run_id=RunId(SESSION), canary_id="vault", at=after(50))
    halted = an_audit_event(101, action=AuditAction.SESSION_HALTED)

    await stores.gateway_ledger.halt(settled(a_call()), (executed(), halted), quarantine)

    session = await stores.gateway_sessions.get(ORG, SESSION)
    assert session is not None
    assert session.revoked_at == after(50)
    thread = await stores.threads.get(ORG, OWN_THREAD.id)
    assert thread is not None
    assert thread.quarantine == quarantine
    assert len(await stores.gateway_ledger.calls_of(ORG, SESSION)) == 1
    assert AuditAction.SESSION_HALTED in await audited(stores)
