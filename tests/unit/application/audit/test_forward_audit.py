"""ForwardAudit: order, repetition, pauses and bounds of what is sent to a receiver."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from application.audit.forward_audit import FORWARD_EVERY_S, LONGEST_PAUSE_S, ForwardAudit
from application.audit.ports import Receipt
from domain.audit.chain_check import StoredLink
from domain.ids import AuditEventId
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from tests.builders import ORG, OTHER_ORG, after, an_audit_event
from tests.doubles.audit_chain import InMemoryAuditChain, InMemoryAuditForwards
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.unit.application.audit.trail import a_state_with, add_entries, seal

ACCEPTED, REFUSED = Receipt(), Receipt(failure="no")


class Receiver:
    """Answers with these receipts in turn, and then accepts. Has what it was sent, and what it
    accepted."""

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
    state: InMemoryState,
    receiver: Receiver,
    *,
    batch: int = 2,
    turn: InProcessSweepLock | TakenTurn | None = None,
    clock: FixedClock | None = None,
) -> ForwardAudit:
    return ForwardAudit(
        forwards=InMemoryAuditForwards(state),
        chain=InMemoryAuditChain(state),
        receiver=receiver,
        turn=turn or InProcessSweepLock(),
        clock=clock or FixedClock(after(100)),
        batch=batch,
    )


async def sealed_state(count: int) -> tuple[InMemoryState, list[AuditEventId]]:
    """A chain of ORG with so many entries."""
    state = a_state_with()
    entries = add_entries(state, *[after(number) for number in range(count)])
    await seal(state, at=after(60))
    return state, [entry.id for entry in entries]


def prune(state: InMemoryState, *, through: int) -> None:
    """Remove the beginning of the chain of ORG, as retention does."""
    state.audit_heads[ORG] = replace(state.audit_heads[ORG], pruned_through=through)
    state.audit_links[ORG] = [link for link in state.audit_links[ORG] if link.number > through]


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
    receiver, clock = Receiver(REFUSED), FixedClock(after(100))
    forward = forwarding(state, receiver, clock=clock)

    await forward.execute()
    await forward.execute()
    assert receiver.accepted == []
    clock.advance(2)
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
    receiver, clock = Receiver(*[REFUSED] * 10), FixedClock(after(100))
    forward = forwarding(state, receiver, clock=clock)

    with caplog.at_level(logging.INFO):
        for pause_s in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]:
            assert await forward.execute() == FORWARD_EVERY_S
            attempts = len(receiver.batches)
            clock.advance(pause_s - 1)
            await forward.execute()
            assert len(receiver.batches) == attempts
            clock.advance(1)
        await forward.execute()

    assert receiver.accepted == ids
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_the_receiver_may_ask_for_a_longer_pause() -> None:
    state, _ = await sealed_state(1)

    assert await forwarding(state, Receiver(Receipt(failure="no", retry_after_s=90.0))).execute() == 90.0


@pytest.mark.requirement("K8")
@pytest.mark.requirement("K8")
async def test_an_organization_whose_entries_are_never_accepted_does_not_hold_back_others() -> None:
    state, ours = await sealed_state(1)
    theirs = [entry.id for entry in add_entries(state, *[after(1)] * 3, organization_id=OTHER_ORG)]
    await seal(state, at=after(61))
    receiver, clock = Receiver(REFUSED), FixedClock(after(100))
    forward = forwarding(state, receiver, clock=clock)

    await forward.execute()
    assert receiver.accepted == theirs
    clock.advance(2)
    await forward.execute()

    assert receiver.accepted == [*theirs, *ours]


async def test_after_a_pause_that_the_receiver_asked_for_others_come_before_the_refused() -> None:
    state, ours = await sealed_state(1)
    theirs = [entry.id for entry in add_entries(state, after(1), organization_id=OTHER_ORG)]
    await seal(state, at=after(61))
    receiver, clock = Receiver(Receipt(failure="no", retry_after_s=90.0)), FixedClock(after(100))
    forward = forwarding(state, receiver, clock=clock)

    assert await forward.execute() == 90.0
    assert receiver.batches == [ours]
    clock.advance(90)
    await forward.execute()

    assert receiver.accepted == [*theirs, *ours]


async def test_a_batch_is_bounded_in_the_length_of_its_texts() -> None:
    state, ids = await sealed_state(0)
    for number in range(3):
        entry = an_audit_event(number + 1, details={"note": "x" * 600_000})
        state.record(entry)
        ids.append(entry.id)
    await seal(state, at=after(60))
    receiver = Receiver()

    await forwarding(state, receiver, batch=3).execute()

    assert receiver.batches == [[id] for id in ids]


@pytest.mark.requirement("K8")
async def test_what_retention_removes_while_nothing_was_ever_accepted_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state, ids = await sealed_state(3)
    receiver, clock = Receiver(REFUSED, REFUSED), FixedClock(after(100))
    forward = forwarding(state, receiver, clock=clock)

    await forward.execute()
    prune(state, through=2)
    clock.advance(2)
    await forward.execute()
    assert "removed" not in caplog.text
    clock.advance(4)
    await forward.execute()

    assert receiver.accepted == ids[2:]
    assert caplog.text.count("2 audit entries were removed before they were sent") == 1


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
    prune(state, through=2)
    receiver = Receiver()

    await forwarding(state, receiver).execute()

    assert receiver.accepted == ids[2:]
    assert "1 audit entries were removed before they were sent" in caplog.text


async def test_the_receiver_is_closed_at_the_end() -> None:
    receiver = Receiver()

    await forwarding(a_state_with(), receiver).close()

    assert receiver.is_closed
