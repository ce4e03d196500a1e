"""A worker whose lease is lost changes nothing in the database, whatever it still wants to write;
on the real databases."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from sqlalchemy import Connection, select

from application.runs.ports import ClaimedRun, LeaseLost
from application.usage.ports import Reservation
from domain.approvals.approval import ApprovalOutcome, ApprovalState
from domain.ids import WorkerId
from domain.runs.approvals import new_approvals
from domain.runs.events import NewEvent, RunEventType
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.runs.step import Step
from domain.runs.usage import ModelSpending
from domain.threads.thread import Quarantine
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import metadata
from tests.approval_builders import awaiting_approval_call
from tests.builders import AGENT, KEY, ORG, OTHER_WORKER, RUN, START, WORKER, a_settled_call, a_tool_call, after
from tests.contract.run_changes import cancel
from tests.contract.run_steps import (
    LEASE_S,
    answer_step,
    claim,
    finish_step,
    reply_step,
    settle_step,
    start_and_claim,
    suspend_step,
)
from tests.contract.stores import Stores
from tests.run_builders import some_usage

RECORDED, OTHER = a_tool_call(0), a_tool_call(1)
ASKED, ASKING = awaiting_approval_call(a_tool_call(2)), awaiting_approval_call(a_tool_call(3))
NEW = a_tool_call(0, turn=2)
DELTA = NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": "msg_1", "text": "…"})

Tables = Mapping[str, list[str]]


async def dump(database: Database) -> Tables:
    """Every row of every table."""

    def read(connection: Connection) -> Tables:
        tables = metadata.sorted_tables
        return {table.name: sorted(map(repr, connection.execute(select(table)))) for table in tables}

    return await database.read(read, scope=SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """The worker that had the run, with what it knows."""

    stores: Stores
    claimed: ClaimedRun

    @property
    def lease(self) -> Lease:
        return self.claimed.lease

    async def commit(self, step: Step) -> bool:
        """Whether it was told that its lease is lost."""
        return await _says_so(self.stores.journal.commit(self.lease, step))


Write = Callable[[Former], Awaitable[bool]]


async def _says_so(write: Awaitable[object]) -> bool:
    try:
        await write
    except LeaseLost as lost:
        return lost.run_id == RUN
    return False


def committing(build: Callable[[ClaimedRun], Step]) -> Write:
    return lambda former: former.commit(build(former.claimed))


def waiting(claimed: ClaimedRun) -> Step:
    """The run begins to wait for an approval, which gets its timer."""
    step = suspend_step(claimed.run, ASKING)
    return replace(step, changed=(ASKING,), approvals=new_approvals(claimed.run, [ASKING], at=START))


def denied(claimed: ClaimedRun) -> Step:
    assert ASKED.approval is not None
    outcome = ApprovalOutcome(approval_id=ASKED.approval.id, state=ApprovalState.EXPIRED, at=after(9), by="system")
    return Step(run=claimed.run, outcomes=(outcome,))


def halted(claimed: ClaimedRun) -> Step:
    return replace(finish_step(claimed.run), quarantine=Quarantine(run_id=RUN, canary_id="vault", at=after(9)))


def charged(claimed: ClaimedRun) -> Step:
    return Step(run=claimed.run, spent=(ModelSpending(model="scripted:a", usage=some_usage(), at=START),))


def answered(claimed: ClaimedRun) -> Step:
    return answer_step(claimed.run, replace(RECORDED, result=a_settled_call(RECORDED).result))


async def renew(former: Former) -> bool:
    renewed = former.stores.leases.renew(WORKER, (former.lease,), lease_s=LEASE_S, at=after(60))
    return await renewed == frozenset({RUN})


async def hand_back(former: Former) -> bool:
    return not await former.stores.leases.hand_back(former.lease, active_s=7.0, at=after(9))


async def reserve(former: Former) -> bool:
    wanted = Reservation(
        agent_id=AGENT,
        day=START.date(),
        amount_usd=Decimal(1),
        organization_budget_usd=Decimal(5),
        agent_budget_usd=None,
    )
    return await _says_so(former.stores.reservations.reserve(former.lease, wanted))


WRITES: Mapping[str, Write] = {
    "nothing but the run": committing(lambda claimed: Step(run=replace(claimed.run, output="Mine."))),
    "events": committing(lambda claimed: Step(run=claimed.run, events=(DELTA,))),
    "deltas alone": lambda former: _says_so(former.stores.journal.append(former.lease, (DELTA,))),
    "a reply with new calls": committing(lambda claimed: reply_step(claimed.run, NEW, text="Again.")),
    "the outcome of a call, with its audit entry": committing(
        lambda claimed: settle_step(claimed.run, a_settled_call(RECORDED))
    ),
    "a changed call": committing(
        lambda claimed: Step(run=claimed.run, changed=(replace(OTHER, params={"text": "other"}),))
    ),
    "the tool message": committing(answered),
    "an approval and its timer": committing(waiting),
    "the end of an approval": committing(denied),
    "what a model call cost": committing(charged),
    "the end of the run": committing(lambda claimed: finish_step(claimed.run)),
    "its failure": committing(lambda claimed: finish_step(claimed.run, RunStatus.FAILED)),
    "its halt, with the thread in quarantine": committing(halted),
    "a longer lease": renew,
    "the run handed back": hand_back,
    "a share of the budget": reserve,
}


async def lapse(stores: Stores) -> None:
    assert await stores.leases.recoverable(at=after(LEASE_S + 1), limit=10) == (RUN,)


async def takes_over(stores: Stores, worker_id: WorkerId = OTHER_WORKER) -> ClaimedRun:
    await lapse(stores)
    return await claim(stores, RUN, worker_id=worker_id, at=after(LEASE_S + 2))


async def ends_it(stores: Stores) -> None:
    other = await takes_over(stores)
    await stores.journal.commit(other.lease, finish_step(other.run))


async def lets_it_wait(stores: Stores) -> None:
    other = await takes_over(stores)
    await stores.journal.commit(other.lease, waiting(other))


async def is_cancelled(stores: Stores) -> None:
    await lapse(stores)
    await cancel(stores.runs, ORG, RUN, actor=KEY, at=after(LEASE_S + 2))


MEANWHILE: Mapping[str, Callable[[Stores], Awaitable[object]]] = {
    "it is put back": lapse,
    "another worker takes it over": takes_over,
    "another worker ends it": ends_it,
    "another worker lets it wait": lets_it_wait,
    "it is cancelled": is_cancelled,
}


@pytest.fixture
async def former(stores: Stores) -> Former:
    """A worker in the middle of a turn: calls are recorded, and somebody was asked for an
    approval."""
    claimed = await start_and_claim(stores)
    replied = reply_step(claimed.run, RECORDED, OTHER, ASKED, ASKING)
    await stores.journal.commit(
        claimed.lease, replace(replied, approvals=new_approvals(claimed.run, [ASKED], at=START))
    )
    return Former(stores=stores, claimed=claimed)


@pytest.mark.requirement("E2", "E3", "E4", "C5")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_a_worker_that_comes_back_after_its_lease_was_lost_changes_no_row(
    database: Database, former: Former, meanwhile: str
) -> None:
    await MEANWHILE[meanwhile](former.stores)
    before = await dump(database)
    for what, write in WRITES.items():
        assert await write(former), f"{what}: it was not told"
        assert await dump(database) == before, what


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("what", WRITES)
async def test_the_same_writes_change_rows_while_the_lease_holds(database: Database, former: Former, what: str) -> None:
    before = await dump(database)
    assert not await WRITES[what](former)
    assert await dump(database) != before
