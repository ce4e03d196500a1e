"""The contract of `GatewayApprovals` and `LostCalls`: calls that wait for a person, and calls that
nobody settles."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from application.gateway.ports import AskedCall
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, approval_digest
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.ids import ApprovalId, RunId
from domain.threads.thread import Quarantine
from tests.builders import AGENT, KEY, ORG, OTHER_ORG, after, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.contract.test_gateway import SESSION, a_call, audited, executed, opened, settled


def an_approval(number: int = 1, *, of: GatewayCall | None = None) -> Approval:
    call = of or a_call()
    return Approval(
        id=ApprovalId(numbered("apr", number)),
        organization_id=ORG,
        gateway_session_id=SESSION,
        tool_call_id=call.id,
        tool=call.name,
        arguments=call.params,
        digest=approval_digest(call.name, call.params, 1),
        agent_id=AGENT,
        agent_version=1,
        requested_by=KEY,
        allow_self_approval=True,
        cause="The policy of the agent requires an approval.",
        created_at=after(number),
        expires_at=after(1000),
    )


def awaiting(call: GatewayCall, approval: Approval) -> GatewayCall:
    return replace(call, state=GatewayCallState.AWAITING_APPROVAL, approval_id=approval.id)


def ended(approval: Approval, state: ApprovalState = ApprovalState.APPROVED) -> ApprovalOutcome:
    return ApprovalOutcome(approval_id=approval.id, state=state, at=after(60), by=KEY, reason="Fine.")


async def asked(stores: Stores, number: int = 1) -> AskedCall:
    call = a_call(number)
    approval = an_approval(number, of=call)
    assert await stores.gateway_approvals.ask(awaiting(call, approval), approval)
    return AskedCall(call=awaiting(call, approval), approval=approval)


@pytest.mark.requirement("C3", "F5")
async def test_a_call_waits_with_its_approval_and_the_timer_that_ends_it(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)

    assert await stores.gateway_approvals.asked(ORG, SESSION, waiting.call.name) == (waiting,)
    assert await stores.gateway_approvals.asked(ORG, SESSION, "mcp__clock__other") == ()
    assert await stores.gateway_approvals.asked(OTHER_ORG, SESSION, waiting.call.name) == ()
    assert await stores.approvals.get(ORG, waiting.approval.id) == waiting.approval
    assert [timer.subject_id for timer in await stores.timers.due(at=after(1000), limit=9)] == [waiting.approval.id]
    assert await stores.lost_calls.lost(before=None, limit=9) == ()


@pytest.mark.requirement("C3")
async def test_an_approval_ends_once_with_its_audit_entry_and_without_its_timer(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)
    approved = an_audit_event(100, action=AuditAction.TOOL_APPROVED)

    assert await stores.gateway_approvals.end(waiting.approval, ended(waiting.approval), (approved,))
    denied = ended(waiting.approval, ApprovalState.DENIED)
    assert not await stores.gateway_approvals.end(waiting.approval, denied, (executed(101),))

    stored = await stores.approvals.get(ORG, waiting.approval.id)
    assert stored is not None
    assert (stored.state, stored.decided_by, stored.reason) == (ApprovalState.APPROVED, KEY, "Fine.")
    assert await stores.timers.next_due() is None
    assert await audited(stores) == [AuditAction.GATEWAY_SESSION_CREATED, AuditAction.TOOL_APPROVED]


@pytest.mark.requirement("C3", "E3")
async def test_an_asked_call_is_begun_once_however_many_try(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)
    await stores.gateway_approvals.end(waiting.approval, ended(waiting.approval), ())
    sent = replace(waiting.call, params={"zone": "CET"}, recorded_at=after(70), due_at=after(90))

    begun = await asyncio.gather(*(stores.gateway_approvals.begin(waiting, sent) for _ in range(5)))

    assert sorted(begun) == [False, False, False, False, True]
    assert await stores.gateway_approvals.asked(ORG, SESSION, waiting.call.name) == ()
    ((call, settlement),) = await stores.gateway_ledger.calls_of(ORG, SESSION)
    assert settlement is None
    assert call == replace(sent, state=GatewayCallState.RECORDED)
    stored = await stores.approvals.get(ORG, waiting.approval.id)
    assert stored is not None
    assert stored.state is ApprovalState.APPROVED
    assert await stores.gateway_ledger.settle(settled(call), executed())


async def test_a_call_that_policy_allows_by_now_is_begun_and_its_approval_is_stale(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)

    assert await stores.gateway_approvals.begin(waiting, waiting.call)

    stored = await stores.approvals.get(ORG, waiting.approval.id)
    assert stored is not None
    assert stored.state is ApprovalState.STALE
    assert await stores.timers.next_due() is None


@pytest.mark.requirement("C3")
async def test_a_stale_approval_is_replaced_once(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)
    renewed = replace(an_approval(2), agent_version=2)
    call = replace(waiting.call, approval_id=renewed.id)

    assert await stores.gateway_approvals.ask(call, renewed, instead_of=waiting.approval)
    assert not await stores.gateway_approvals.ask(call, an_approval(3), instead_of=waiting.approval)
    assert not await stores.gateway_approvals.begin(waiting, waiting.call)

    assert await stores.gateway_approvals.asked(ORG, SESSION, call.name) == (AskedCall(call=call, approval=renewed),)
    old = await stores.approvals.get(ORG, waiting.approval.id)
    assert old is not None
    assert old.state is ApprovalState.STALE
    assert [timer.subject_id for timer in await stores.timers.due(at=after(1000), limit=9)] == [renewed.id]


async def test_a_call_that_was_told_of_its_denial_waits_no_longer(stores: Stores) -> None:
    await opened(stores)
    waiting = await asked(stores)
    await stores.gateway_approvals.end(waiting.approval, ended(waiting.approval, ApprovalState.DENIED), ())
    assert len(await stores.gateway_approvals.asked(ORG, SESSION, waiting.call.name)) == 1

    assert await stores.gateway_ledger.settle(settled(waiting.call), executed())

    assert await stores.gateway_approvals.asked(ORG, SESSION, waiting.call.name) == ()


async def test_calls_that_wait_count_for_how_many_a_session_may_make(stores: Stores) -> None:
    await opened(stores)
    await asked(stores, 1)
    second = an_approval(2, of=a_call(2))

    assert not await stores.gateway_approvals.ask(awaiting(a_call(2), second), second, max_calls=1)
    assert await stores.approvals.get(ORG, second.id) is None
    assert await stores.gateway_approvals.ask(awaiting(a_call(2), second), second, max_calls=2)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("how", ["revoked", "halted"])
async def test_approvals_that_an_ended_session_waits_for_are_cancelled(stores: Stores, how: str) -> None:
    await opened(stores)
    waiting = await asked(stores)
    if how == "revoked":
        revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(9))
        await stores.gateway_sessions.revoke(ORG, SESSION, revoked)
    else:
        quarantine = Quarantine(run_id=RunId(SESSION), canary_id="vault", at=after(50))
        await stores.gateway_ledger.halt(settled(a_call(5)), (executed(),), quarantine)

    stored = await stores.approvals.get(ORG, waiting.approval.id)
    assert stored is not None
    assert stored.state is ApprovalState.CANCELLED
    assert await stores.timers.next_due() is None


@pytest.mark.requirement("E3", "F5")
async def test_calls_that_are_due_and_not_settled_are_lost(stores: Stores) -> None:
    session = await opened(stores)
    due, live, done = (replace(a_call(number), due_at=after(due)) for number, due in ((1, 100), (2, 300), (3, 100)))
    for call in (due, live, done):
        await stores.gateway_ledger.intend(call)
    await stores.gateway_ledger.settle(settled(done), executed())

    assert await stores.lost_calls.lost(before=after(200), limit=9) == ((session, due),)
    everything = await stores.lost_calls.lost(before=None, limit=9)
    assert sorted(call.id for _, call in everything) == [due.id, live.id]
    assert len(await stores.lost_calls.lost(before=None, limit=1)) == 1


async def test_nothing_can_be_asked_for_a_deleted_session(stores: Stores) -> None:
    approval = an_approval()
    with pytest.raises(ServiceError) as caught:
        await stores.gateway_approvals.ask(awaiting(a_call(), approval), approval)
    assert (caught.value.code, caught.value.kind) == ("gateway_session_not_found", ErrorKind.NOT_FOUND)
    assert await stores.approvals.get(ORG, approval.id) is None


@pytest.mark.requirement("E7", "F5")
async def test_the_thread_of_a_session_is_kept_until_the_session_has_long_ended(stores: Stores) -> None:
    session = await opened(stores)
    late = session.expires_at

    async def idle(before: datetime) -> bool:
        found = await stores.retention.idle_threads(ORG, before, after=None, limit=9)
        return found.found == (session.thread_id,)

    assert not await idle(late)
    assert await idle(late + timedelta(seconds=1))
    revoked = an_audit_event(2, action=AuditAction.GATEWAY_SESSION_REVOKED, at=after(9))
    await stores.gateway_sessions.revoke(ORG, SESSION, revoked)
    assert not await idle(after(9))
    assert await idle(after(10))
    assert (await stores.retention.remove(ORG, session.thread_id, after(10))).threads == 1
