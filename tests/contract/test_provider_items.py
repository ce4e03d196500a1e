"""The provider's items of a reply: stored with its message, and read by the next claim of the
thread alone."""

from dataclasses import replace
from functools import partial

import pytest

from application.system.pages import PageRequest
from domain.runs.run import MultitaskStrategy, Run
from domain.runs.step import Step
from domain.threads.message import Message
from domain.threads.provider_items import ProviderItems
from tests.builders import ORG, RUN, THREAD, a_message, a_run_id, a_settled_call, a_tool_call, after
from tests.contract.paging import all_of
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import (
    LEASE_S,
    answer_step,
    claim,
    finish_step,
    reply_step,
    run_number,
    start,
    start_and_claim,
)
from tests.contract.stores import Stores

MARKER = "planted-reasoning"
ITEMS = ProviderItems(
    origin="openai api.openai.com responses gpt-test",
    data=b'[{"type":"reasoning","encrypted_content":"planted-reasoning\\u0000 \n\xc3\x9f"}]',
)


def with_items(step: Step, items: ProviderItems = ITEMS) -> Step:
    """The model's reply with the provider's items."""
    first, *others = step.messages
    return replace(step, messages=(replace(first, items=items), *others))


async def replied(stores: Stores, run: Run | None = None) -> Message:
    """A run with one reply that has items, completed; the message."""
    claimed = await start_and_claim(stores, run)
    step = with_items(reply_step(claimed.run))
    await stores.journal.commit(claimed.lease, step)
    await stores.journal.commit(claimed.lease, finish_step(step.run))
    return step.messages[0]


@pytest.mark.requirement("H1")
async def test_the_next_worker_gets_the_items_of_a_reply_as_they_came(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    call = a_tool_call(0)
    step = with_items(reply_step(claimed.run, call))
    await run_stores.journal.commit(claimed.lease, step)
    await run_stores.leases.recoverable(at=after(LEASE_S + 1), limit=10)

    taken = await claim(run_stores, RUN, at=after(LEASE_S + 2))

    reply = taken.transcript[-1]
    assert reply == step.messages[0]
    assert reply.items == ITEMS
    assert [open_call.id for open_call in taken.open_calls] == [call.id]


@pytest.mark.requirement("H1")
async def test_later_runs_of_the_thread_get_the_items_of_earlier_ones(run_stores: Stores) -> None:
    first = await replied(run_stores, run_number(1))
    second = await replied(run_stores, run_number(2))

    claimed = await start_and_claim(run_stores, run_number(3))

    assert [message.items for message in claimed.transcript if message.id in (first.id, second.id)] == [ITEMS, ITEMS]


@pytest.mark.requirement("H1")
async def test_only_the_messages_of_the_model_have_items(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    call = a_tool_call(0)
    asked = with_items(reply_step(claimed.run, call))
    answered = answer_step(claimed.run, a_settled_call(call))
    await run_stores.journal.commit(claimed.lease, replace(asked, messages=(*asked.messages, *answered.messages)))
    await run_stores.journal.commit(claimed.lease, finish_step(asked.run))

    taken = await start_and_claim(run_stores, run_number(2))

    assert [message.items for message in taken.transcript] == [
        ITEMS if message.id == asked.messages[0].id else None for message in taken.transcript
    ]


@pytest.mark.requirement("H1")
async def test_items_are_in_no_answer_to_other_readers(run_stores: Stores) -> None:
    message = await replied(run_stores)
    shown = replace(message, items=None)

    assert (await messages_of(run_stores.runs, ORG, RUN))[-1] == shown
    assert (await all_of(partial(run_stores.threads.messages, ORG, THREAD)))[-1] == shown
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert message.id in repr(events)
    assert MARKER not in repr(events)


@pytest.mark.requirement("H1")
async def test_a_message_in_between_changes_no_items(run_stores: Stores) -> None:
    message = await replied(run_stores)
    await run_stores.threads.append(ORG, a_message(9))

    claimed = await start_and_claim(run_stores, run_number(2))

    assert {message.id: ITEMS} == {entry.id: entry.items for entry in claimed.transcript if entry.items is not None}


@pytest.mark.requirement("H1", "E5")
async def test_a_rolled_back_run_leaves_no_items_to_the_next_one(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.commit(claimed.lease, with_items(reply_step(claimed.run)))
    await start(run_stores, run_number(2), strategy=MultitaskStrategy.ROLLBACK)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))

    taken = await claim(run_stores, a_run_id(2))

    assert [message.items for message in taken.transcript] == [None] * len(taken.transcript)
    page = await run_stores.threads.messages(ORG, THREAD, PageRequest(limit=100))
    assert {message.run_id for message in page.items} <= {a_run_id(2), None}
