"""The contract of `ThreadStore.fork` and of its list."""

from dataclasses import replace
from functools import partial

import pytest

from application.system.pages import PageRequest
from domain.ids import MessageId
from domain.runs.run import MultitaskStrategy
from domain.threads.message import Role
from domain.threads.thread import ForkPoint
from tests.builders import ORG, OTHER_ORG, THREAD, a_deletion, a_message, a_thread, a_thread_id, after
from tests.contract.paging import all_of
from tests.contract.run_steps import finish_step, reply_step, run_number, start, start_and_claim
from tests.contract.stores import Stores
from tests.refusals import refused

pytestmark = pytest.mark.requirement("U6")

TALK = (
    a_message(1, "Count the apples"),
    a_message(2, "There are 42.", role=Role.ASSISTANT),
    a_message(3, "And the pears"),
    a_message(4, "None.", role=Role.ASSISTANT),
)
FORK = a_thread(a_thread_id(7), created_at=after(60), forked_from=ForkPoint(thread_id=THREAD, before=TALK[2].id))


async def spoken_in(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    for message in TALK:
        await stores.threads.append(ORG, message)


async def test_a_fork_begins_with_the_messages_before_its_place_and_both_threads_go_on_alone(stores: Stores) -> None:
    await spoken_in(stores)
    assert await stores.threads.fork(FORK) == TALK[2]
    assert await stores.threads.get(ORG, FORK.id) == FORK
    copies = tuple(replace(message, thread_id=FORK.id) for message in TALK[:2])
    said = a_message(9, "And the plums", thread_id=FORK.id)
    await stores.threads.append(ORG, said)
    assert await all_of(partial(stores.threads.messages, ORG, FORK.id)) == (*copies, said)
    assert await all_of(partial(stores.threads.messages, ORG, THREAD)) == TALK


async def test_a_fork_after_all_messages_has_all_and_can_be_forked_at_a_copy(stores: Stores) -> None:
    await spoken_in(stores)
    whole = replace(FORK, forked_from=ForkPoint(thread_id=THREAD, before=None))
    again = a_thread(a_thread_id(8), forked_from=ForkPoint(thread_id=FORK.id, before=TALK[0].id))
    assert await stores.threads.fork(whole) is None
    await stores.threads.fork(again)
    assert len(await all_of(partial(stores.threads.messages, ORG, FORK.id))) == 4
    assert await stores.threads.get(ORG, FORK.id) == whole
    assert await all_of(partial(stores.threads.messages, ORG, again.id)) == ()


async def test_the_forks_of_a_thread_are_listed_newest_first_also_after_it_was_deleted(stores: Stores) -> None:
    await spoken_in(stores)
    later = replace(FORK, id=a_thread_id(8), created_at=after(90))
    for new in (FORK, later):
        await stores.threads.fork(new)
    assert await stores.threads.delete(ORG, THREAD, a_deletion())
    found = await stores.threads.conversations(ORG, "", PageRequest(), forked_from=THREAD)
    assert [(each.thread, each.opening) for each in found.items] == [
        (later, "Count the apples"),
        (FORK, "Count the apples"),
    ]
    for organization_id, thread_id in ((ORG, FORK.id), (OTHER_ORG, THREAD)):
        elsewhere = await stores.threads.conversations(organization_id, "", PageRequest(), forked_from=thread_id)
        assert elsewhere.items == ()


@pytest.mark.parametrize(
    ("before", "code"), [(TALK[1].id, "fork_place_invalid"), (MessageId("msg_none"), "message_not_found")]
)
async def test_a_place_that_is_no_message_of_a_user_is_refused(stores: Stores, before: MessageId, code: str) -> None:
    await spoken_in(stores)
    with refused(code):
        await stores.threads.fork(replace(FORK, forked_from=ForkPoint(thread_id=THREAD, before=before)))
    assert await stores.threads.get(ORG, FORK.id) is None


async def test_a_thread_of_another_organization_is_not_found(stores: Stores) -> None:
    await spoken_in(stores)
    with refused("thread_not_found"):
        await stores.threads.fork(replace(FORK, organization_id=OTHER_ORG))
    with refused("thread_not_found"):
        await stores.threads.fork(replace(FORK, forked_from=ForkPoint(thread_id=a_thread_id(9), before=None)))


async def test_a_fork_has_the_messages_of_runs_without_the_runs(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    step = reply_step(claimed.run)
    await run_stores.journal.commit(claimed.lease, step)
    whole = replace(FORK, forked_from=ForkPoint(thread_id=THREAD, before=None))
    with refused("thread_busy"):
        await run_stores.threads.fork(whole)
    await run_stores.journal.commit(claimed.lease, finish_step(step.run))
    messages = await all_of(partial(run_stores.threads.messages, ORG, THREAD))
    assert {message.run_id for message in messages} == {claimed.run.id}
    await run_stores.threads.fork(whole)
    copies = await all_of(partial(run_stores.threads.messages, ORG, FORK.id))
    assert copies == tuple(replace(message, thread_id=FORK.id, run_id=None) for message in messages)
    again = run_number(2, thread_id=FORK.id)
    assert (await start_and_claim(run_stores, again)).transcript[: len(copies)] == copies


async def test_a_superseded_message_is_not_copied_and_no_place(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    [superseded, *_] = await all_of(partial(run_stores.threads.messages, ORG, THREAD))
    await start(run_stores, run_number(2), strategy=MultitaskStrategy.ROLLBACK)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    with refused("message_not_found"):
        await run_stores.threads.fork(replace(FORK, forked_from=ForkPoint(thread_id=THREAD, before=superseded.id)))
