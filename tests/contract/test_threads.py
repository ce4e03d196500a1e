"""The contract of `ThreadStore`."""

from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.new_run import IdempotencyKey
from application.system.pages import PageRequest
from domain.errors import ErrorKind, ServiceError
from domain.threads.message import FileContent, ImageContent, TextContent
from tests.builders import (
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    a_deletion,
    a_displayable_call,
    a_message,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    after,
)
from tests.contract.paging import all_of, pages_of
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import (
    claim,
    finish_step,
    reply_step,
    start,
    start_and_claim,
    start_and_suspend,
)
from tests.contract.stores import Stores


async def test_a_stored_thread_is_read_back_as_it_was(stores: Stores) -> None:
    thread = a_thread(metadata={"topic": "tides", "tags": ["a", {"b": None}]}, created_at=after(0.123456))
    await stores.threads.add(thread)
    assert await stores.threads.get(ORG, THREAD) == thread


async def test_an_unknown_thread_is_none(stores: Stores) -> None:
    assert await stores.threads.get(ORG, THREAD) is None


async def test_threads_are_listed_newest_first_over_several_pages(stores: Stores) -> None:
    threads = [a_thread(a_thread_id(number), created_at=after(number)) for number in range(1, 6)]
    for thread in (threads[2], threads[0], threads[4], threads[1], threads[3]):
        await stores.threads.add(thread)
    pages = await pages_of(partial(stores.threads.conversations, ORG, ""), limit=2)
    listed = [tuple(each.thread for each in page) for page in pages]
    assert listed == [(threads[4], threads[3]), (threads[2], threads[1]), (threads[0],)]


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("search", "numbers"),
    [("", [3, 2, 1]), ("TIDES", [1]), ('"moon"', [2]), ("text", []), ("%", []), ("nothing", [])],
)
async def test_conversations_are_named_and_found_by_their_first_words(
    stores: Stores, search: str, numbers: list[int]
) -> None:
    openings = {1: "When are the tides?", 2: 'Is the "moon"\nfull? ' + "🙂" * 2_000, 3: None}
    for number, opening in openings.items():
        await stores.threads.add(a_thread(a_thread_id(number), created_at=after(number)))
        if opening is not None:
            await stores.threads.append(ORG, a_message(2 * number, opening, thread_id=a_thread_id(number)))
            await stores.threads.append(ORG, a_message(2 * number + 1, "Nothing.", thread_id=a_thread_id(number)))
    found = await pages_of(partial(stores.threads.conversations, ORG, search), limit=2)
    listed = [each for page in found for each in page]
    assert [each.thread.id for each in listed] == [a_thread_id(number) for number in numbers]
    for each, number in zip(listed, numbers, strict=True):
        assert (openings[number] or "").startswith(each.opening or "")
        assert bool(each.opening) is (openings[number] is not None)
    elsewhere = await stores.threads.conversations(OTHER_ORG, "", PageRequest())
    assert elsewhere.items == ()


async def test_the_last_page_has_no_cursor_even_when_it_is_full(stores: Stores) -> None:
    for number in range(1, 5):
        await stores.threads.add(a_thread(a_thread_id(number), created_at=after(number)))
    assert [len(page) for page in await pages_of(partial(stores.threads.conversations, ORG, ""), limit=2)] == [2, 2]


async def test_threads_of_the_same_moment_are_each_listed_once(stores: Stores) -> None:
    for number in range(1, 6):
        await stores.threads.add(a_thread(a_thread_id(number)))
    pages = await pages_of(partial(stores.threads.conversations, ORG, ""), limit=2)
    assert sorted(each.thread.id for page in pages for each in page) == [a_thread_id(number) for number in range(1, 6)]


async def test_a_thread_added_between_two_pages_does_not_shift_them(stores: Stores) -> None:
    for number in (1, 2, 3):
        await stores.threads.add(a_thread(a_thread_id(number), created_at=after(number)))
    first = await stores.threads.conversations(ORG, "", PageRequest(limit=2))
    await stores.threads.add(a_thread(a_thread_id(4), created_at=after(4)))
    second = await stores.threads.conversations(ORG, "", PageRequest(limit=2, cursor=first.next_cursor))
    assert [each.thread.id for each in (*first.items, *second.items)] == [a_thread_id(number) for number in (3, 2, 1)]


@pytest.mark.parametrize("cursor", ["", "rubbish", "🙂", "WzEsIDJd", "bnVsbA=="])
async def test_a_cursor_that_no_list_gave_out_is_refused(stores: Stores, cursor: str) -> None:
    with pytest.raises(ServiceError) as refused:
        await stores.threads.conversations(ORG, "", PageRequest(cursor=cursor))
    assert (refused.value.code, refused.value.kind) == ("cursor_invalid", ErrorKind.INVALID)


async def test_messages_keep_the_order_in_which_they_were_added_whatever_their_times(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    messages = [a_message(number, created_at=after(10 - number)) for number in (3, 1, 2)]
    for message in messages:
        await stores.threads.append(ORG, message)
    pages = await pages_of(partial(stores.threads.messages, ORG, THREAD), limit=2)
    assert pages == [tuple(messages[:2]), tuple(messages[2:])]


async def test_a_message_added_between_two_pages_comes_at_the_end(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    for number in (1, 2, 3):
        await stores.threads.append(ORG, a_message(number))
    first = await stores.threads.messages(ORG, THREAD, PageRequest(limit=2))
    await stores.threads.append(ORG, a_message(4))
    second = await stores.threads.messages(ORG, THREAD, PageRequest(limit=2, cursor=first.next_cursor))
    assert second.items == (a_message(3), a_message(4))
    assert second.next_cursor is None


async def test_a_message_with_text_and_images_is_read_back_as_it_was(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    message = a_message(
        content=(
            TextContent(text="Was ist das?\n\u2028🙂 \\u0041"),
            ImageContent(media_type="image/png", data="iVBORw0KGgo="),
            ImageContent(media_type="image/jpeg", url="https://example.org/a.jpg"),
            FileContent(media_type="application/pdf", name="ü.pdf", data="JVBERi0="),
            FileContent(media_type="application/pdf", url="https://example.org/a.pdf"),
        )
    )
    await stores.threads.append(ORG, message)
    assert await all_of(partial(stores.threads.messages, ORG, THREAD)) == (message,)


async def test_a_thread_without_messages_has_an_empty_page(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    assert await all_of(partial(stores.threads.messages, ORG, THREAD)) == ()


async def test_appending_to_an_unknown_thread_is_not_found(stores: Stores) -> None:
    with pytest.raises(ServiceError) as refused:
        await stores.threads.append(ORG, a_message())
    assert (refused.value.code, refused.value.kind) == ("thread_not_found", ErrorKind.NOT_FOUND)


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("state", ["queued", "in_progress", "requires_action"])
async def test_a_thread_with_an_unfinished_run_refuses_messages_and_deletion_naming_the_run(
    run_stores: Stores, state: str
) -> None:
    match state:
        case "queued":
            await start(run_stores)
        case "in_progress":
            await start_and_claim(run_stores)
        case _:
            await start_and_suspend(run_stores)
    before = await all_of(partial(run_stores.threads.messages, ORG, THREAD))

    with pytest.raises(ServiceError) as append:
        await run_stores.threads.append(ORG, a_message())
    with pytest.raises(ServiceError) as delete:
        await run_stores.threads.delete(ORG, THREAD, a_deletion())

    for refused in (append, delete):
        assert (refused.value.code, refused.value.kind) == ("thread_busy", ErrorKind.CONFLICT)
        assert refused.value.extra == {"run_id": RUN}
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == before


@pytest.mark.requirement("E5")
async def test_a_thread_whose_run_has_ended_takes_messages_again(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await run_stores.threads.append(ORG, a_message(text="thanks"))
    messages = await all_of(partial(run_stores.threads.messages, ORG, THREAD))
    assert [message.text for message in messages] == ["What time is it?", "thanks"]


@pytest.mark.requirement("C6")
async def test_another_organizations_thread_does_not_exist(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    await stores.threads.append(ORG, a_message())

    assert await stores.threads.get(OTHER_ORG, THREAD) is None
    assert await all_of(partial(stores.threads.conversations, OTHER_ORG, "")) == ()
    assert await all_of(partial(stores.threads.messages, OTHER_ORG, THREAD)) == ()
    assert not await stores.threads.delete(OTHER_ORG, THREAD, a_deletion())
    with pytest.raises(ServiceError) as refused:
        await stores.threads.append(OTHER_ORG, a_message(2))
    assert refused.value.kind is ErrorKind.NOT_FOUND
    assert await all_of(partial(stores.threads.messages, ORG, THREAD)) == (a_message(),)


@pytest.mark.requirement("E7")
async def test_deleting_a_thread_removes_everything_in_it_but_its_audit(run_stores: Stores) -> None:
    key = IdempotencyKey(key="once", body_digest="sha256:1")
    await start(run_stores, idempotency=key)
    claimed = await claim(run_stores, RUN)
    call = a_displayable_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await run_stores.threads.add(a_thread(a_thread_id(2)))

    assert await run_stores.threads.delete(ORG, THREAD, a_deletion())

    assert await run_stores.threads.get(ORG, THREAD) is None
    assert await all_of(partial(run_stores.threads.messages, ORG, THREAD)) == ()
    assert await run_stores.runs.get(ORG, RUN) is None
    assert await messages_of(run_stores.runs, ORG, RUN) == ()
    assert await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100) == ()
    assert await run_stores.runs.tool_calls(ORG, RUN) == ()
    assert await run_stores.threads.get(ORG, a_thread_id(2)) is not None
    [gone] = (await run_stores.audit.page(ORG, AuditFilter(resource=THREAD), PageRequest())).items
    assert gone == a_deletion()
    audit = await run_stores.audit.page(ORG, AuditFilter(run_id=RUN), PageRequest())
    assert sorted(entry.action for entry in audit.items) == ["run.completed", "run.started"]
    again = a_new_run(a_run(a_run_id(2), thread_id=a_thread_id(2)), idempotency=key)
    assert (await run_stores.runs.start(again)).created


async def test_deleting_twice_says_that_there_is_none(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    assert await stores.threads.delete(ORG, THREAD, a_deletion())
    assert not await stores.threads.delete(ORG, THREAD, a_deletion())
