"""ForwardAudit: order, repetition, pauses and bounds of what is sent to a receiver."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from application.audit.forward_audit import FORWARD_EVERY_S, LONGEST_PAUSE_S, ForwardAudit
from application.audit.ports import Receipt
from domain.audit.chain_check import StoredLink
from domain.ids import AuditEventId
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from tests.builders import ORG, OTHER_ORG, after
from tests.doubles.audit_chain import InMemoryAuditChain, InMemoryAuditForwards
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.unit.application.audit.trail import a_state_with, add_entries, seal

ACCEPTED, REFUSED = Receipt(), Receipt(failure="no")


class Receiver:
    """Answers with these receipts in turn, and then accepts. Has what it was sent, and what it accepted."""

    def __init__(self, *receipts: Receipt) -> None:
        self._receipts = list(receipts)
        self.batches: list[list[str]] = []
        self.accepted: list[str] = []
        self.is_closed = False

    async def send(self, links: Sequence[StoredLink]) -> Receipt:
        sent = [link.link.event_id for link in links]
        self.batches.append(sent)
        receipt = self._receipts.pop(0) if self._receipts else ACCEPTED
        if receipt.failure is None:
            self.accepted += sent
        return receipt

    async def close(self) -> None:
        self.is_closed = True


class TakenTurn:
    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        yield False


def forwarding(
    state: InMemoryState, receiver: Receiver, *, batch: int = 2, turn: InProcessSweepLock | TakenTurn | None = None
) -> ForwardAudit:
    return ForwardAudit(
        forwards=InMemoryAuditForwards(state),
        chain=InMemoryAuditChain(state),
        receiver=receiver,
        turn=turn or InProcessSweepLock(),
        clock=FixedClock(after(100)),
        batch=batch,
    )


async def sealed_state(count: int) -> tuple[InMemoryState, list[AuditEventId]]:
    """A chain of ORG with so many entries."""
    state = a_state_with()
    entries = add_entries(state, *[after(number) for number in range(count)])
    await seal(state, at=after(60))
    return state, [entry.id for entry in entries]


@pytest.mark.requirement("K8")
async def test_sealed_entries_are_sent_once_in_the_order_of_the_chain_and_in_batches() -> None:
    state, ids = await sealed_state(5)
    receiver = Receiver()
    forward = forwarding(state, receiver)

    assert await forward.execute() == FORWARD_EVERY_S
    assert await forward.execute() == FORWARD_EVERY_S

    assert receiver.accepted == ids
    assert [len(batch) for batch in receiver.batches] == [2, 2, 1]


@pytest.mark.requirement("K8")
async def test_a_batch_that_was_not_accepted_is_sent_again_before_those_after_it() -> None:
    state, ids = await sealed_state(3)
    receiver = Receiver(REFUSED)
    forward = forwarding(state, receiver)

    await forward.execute()
    assert receiver.accepted == []
    await forward.execute()

    assert receiver.batches == [ids[:2], ids[:2], ids[2:]]
    assert receiver.accepted == ids


@pytest.mark.requirement("K8")
async def test_another_process_continues_where_this_one_stopped() -> None:
    state, ids = await sealed_state(3)
    first, second = Receiver(ACCEPTED, REFUSED), Receiver()

    await forwarding(state, first).execute()
    await forwarding(state, second).execute()

    assert first.accepted + second.accepted == ids


async def test_organizations_take_turns_by_batches() -> None:
    state, ours = await sealed_state(4)
    theirs = [entry.id for entry in add_entries(state, after(1), organization_id=OTHER_ORG)]
    await seal(state, at=after(61))
    receiver = Receiver()

    await forwarding(state, receiver).execute()

    assert receiver.batches == [ours[:2], theirs, ours[2:]]


@pytest.mark.requirement("K8")
async def test_pauses_double_up_to_five_minutes_and_end_with_the_first_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state, ids = await sealed_state(1)
    receiver = Receiver(*[REFUSED] * 10)
    forward = forwarding(state, receiver)

    with caplog.at_level(logging.INFO):
        pauses = [await forward.execute() for _ in range(10)]
        assert await forward.execute() == FORWARD_EVERY_S

    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert pauses[-1] == LONGEST_PAUSE_S
    assert receiver.accepted == ids
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_the_receiver_may_ask_for_a_longer_pause() -> None:
    state, _ = await sealed_state(1)

    assert await forwarding(state, Receiver(Receipt(failure="no", retry_after_s=90.0))).execute() == 90.0


@pytest.mark.requirement("K8")
async def test_a_batch_that_is_too_large_is_halved_until_it_fits() -> None:
    state, ids = await sealed_state(5)
    too_large = Receipt(failure="too large", too_large=True)
    receiver = Receiver(too_large, too_large)

    assert await forwarding(state, receiver, batch=4).execute() == FORWARD_EVERY_S

    assert [len(batch) for batch in receiver.batches] == [4, 2, 1, 2, 2]
    assert receiver.accepted == ids


async def test_a_single_entry_that_is_too_large_waits_and_is_not_skipped() -> None:
    state, _ = await sealed_state(2)
    receiver = Receiver(*[Receipt(failure="too large", too_large=True)] * 2)

    assert await forwarding(state, receiver).execute() == FORWARD_EVERY_S

    assert [len(batch) for batch in receiver.batches] == [2, 1]
    assert receiver.accepted == []


@pytest.mark.requirement("K8")
async def test_nothing_is_sent_while_another_process_sends() -> None:
    state, _ = await sealed_state(1)
    receiver = Receiver()

    await forwarding(state, receiver, turn=TakenTurn()).execute()

    assert receiver.batches == []


async def test_a_missing_entry_is_reported_and_does_not_hold_back_those_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state, ids = await sealed_state(3)
    del state.audit[ids[0]]
    receiver = Receiver()

    await forwarding(state, receiver).execute()

    assert receiver.accepted == ids[1:]
    assert "missing" in caplog.text


async def test_entries_that_retention_removed_unsent_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    state, ids = await sealed_state(3)
    forwards = InMemoryAuditForwards(state)
    await forwards.sent(ORG, 1, after(70))
    head = state.audit_heads[ORG]
    state.audit_heads[ORG] = type(head)(
        organization_id=ORG,
        number=head.number,
        seal=head.seal,
        pruned_through=2,
        pruned_seal=head.pruned_seal,
        key_id=head.key_id,
        signature=head.signature,
    )
    receiver = Receiver()

    await forwarding(state, receiver).execute()

    assert receiver.accepted == ids[2:]
    assert "1 audit entries were removed by retention" in caplog.text


async def test_the_receiver_is_closed_at_the_end() -> None:
    receiver = Receiver()

    await forwarding(a_state_with(), receiver).close()

    assert receiver.is_closed
