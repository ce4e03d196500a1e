"""The buffer of frequent events: coalesced, in order, nothing lost, failures told once."""

import asyncio
import weakref
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.runs.execution.event_buffer import EventBuffer
from domain.runs.events import NewEvent, RunEventType
from tests.builders import START
from tests.doubles.scripted_model import Gate

Batch = tuple[NewEvent, ...]


def delta(text: str, message_id: str = "m1") -> NewEvent:
    return NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": message_id, "text": text})


def progress(amount: int, call_id: str = "c1") -> NewEvent:
    return NewEvent(type=RunEventType.TOOL_PROGRESS, at=START, data={"tool_call_id": call_id, "progress": amount})


def retrying() -> NewEvent:
    return NewEvent(type=RunEventType.MODEL_RETRYING, at=START, data={"model": "m", "attempt": 2})


class Store:
    """Where batches are written; can hold a write at a gate, or fail it."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.gate: Gate | None = None
        self.error: Exception | None = None
        self.written = asyncio.Event()

    async def write(self, batch: Batch) -> None:
        if self.gate is not None:
            await self.gate.pass_through()
        if self.error is not None:
            self.written.set()
            raise self.error
        self.batches.append(batch)
        self.written.set()


def texts(events: Batch) -> list[str]:
    return [cast(str, event.data["text"]) for event in events]


@pytest.mark.requirement("H2", "E2")
async def test_reasoning_and_text_of_one_message_are_different_events() -> None:
    buffer = EventBuffer(Store().write)
    events = [replace(delta(piece), type=RunEventType.REASONING_DELTA) for piece in ("I ", "look.")]
    for event in (*events, delta("It is "), delta("noon.")):
        buffer.add(event)
    thought, said = await buffer.take()
    assert (thought.type, said.type) == (RunEventType.REASONING_DELTA, RunEventType.MESSAGE_DELTA)
    assert texts((thought, said)) == ["I look.", "It is noon."]


@pytest.mark.requirement("A2", "E2")
async def test_deltas_of_one_message_become_one_event() -> None:
    buffer = EventBuffer(Store().write)
    for piece in ("It ", "is ", "noon."):
        buffer.add(delta(piece))
    assert await buffer.take() == (delta("It is noon."),)


async def test_deltas_of_two_messages_stay_apart() -> None:
    buffer = EventBuffer(Store().write)
    for event in (delta("a"), delta("b"), delta("c", "m2"), retrying(), delta("d", "m2"), delta("e", "m2")):
        buffer.add(event)
    assert await buffer.take() == (delta("ab"), delta("c", "m2"), retrying(), delta("de", "m2"))


@pytest.mark.requirement("B4")
async def test_of_each_calls_progress_only_the_newest_is_kept_however_calls_interleave() -> None:
    buffer = EventBuffer(Store().write)
    for amount in range(1_000):
        buffer.add(progress(amount, "c1"))
        buffer.add(progress(amount, "c2"))
    assert await buffer.take() == (progress(999, "c1"), progress(999, "c2"))


@pytest.mark.requirement("E2")
async def test_events_are_written_without_anybody_taking_them() -> None:
    store = Store()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    buffer.add(delta("b"))
    await store.written.wait()
    assert store.batches == [(delta("ab"),)]
    assert await buffer.take() == ()


async def test_what_comes_during_a_write_is_the_next_batch() -> None:
    store = Store()
    gate = store.gate = Gate()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await gate.reached.wait()
    for piece in ("b", "c", "d"):
        buffer.add(delta(piece))
        await asyncio.sleep(0)
    assert store.batches == []
    store.gate = None
    store.written.clear()
    gate.open.set()
    await store.written.wait()
    store.written.clear()
    await store.written.wait()
    assert [texts(batch) for batch in store.batches] == [["a"], ["bcd"]]


async def test_taking_waits_for_the_write_under_way() -> None:
    store = Store()
    gate = store.gate = Gate()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await gate.reached.wait()
    buffer.add(delta("b"))
    taking = asyncio.create_task(buffer.take())
    await asyncio.sleep(0)
    assert not taking.done()
    gate.open.set()
    taken = await taking
    assert [texts(batch) for batch in (*store.batches, taken) if batch] == [["a"], ["b"]]


@pytest.mark.requirement("E2")
async def test_what_comes_while_the_taker_writes_is_written_after_that() -> None:
    store = Store()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    taken = await buffer.take()
    with buffer.paused():
        buffer.add(delta("b"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert store.batches == []
        store.batches.append(taken)
    await store.written.wait()
    assert [texts(batch) for batch in store.batches] == [["a"], ["b"]]


async def test_a_failed_write_is_told_to_the_next_taker_once() -> None:
    store = Store()
    store.error = ConnectionError("gone")
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await store.written.wait()
    buffer.add(delta("b"))
    with pytest.raises(ConnectionError):
        await buffer.take()
    assert texts(await buffer.take()) == ["b"]


async def test_nothing_is_written_after_a_failed_write_until_it_was_told() -> None:
    store = Store()
    store.error = ConnectionError("gone")
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await store.written.wait()
    store.error = None
    buffer.add(delta("b"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert store.batches == [], "b without a would be a hole in the text"
    with pytest.raises(ConnectionError):
        await buffer.take()


async def test_a_closed_buffer_forgets_and_takes_nothing_more() -> None:
    store = Store()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    buffer.close()
    buffer.add(delta("b"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert (store.batches, await buffer.take()) == ([], ())


async def test_a_write_that_fails_as_the_buffer_is_closed_bothers_nobody(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    gate = store.gate = Gate()
    store.error = ConnectionError("gone")
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await gate.reached.wait()
    buffer.close()
    gate.open.set()
    await store.written.wait()
    await asyncio.sleep(0)
    del buffer
    assert caplog.records == []


async def test_a_cancelled_taker_leaves_the_write_alone_and_the_rest_in_place() -> None:
    store = Store()
    gate = store.gate = Gate()
    buffer = EventBuffer(store.write, interval_s=0)
    buffer.add(delta("a"))
    await gate.reached.wait()
    buffer.add(delta("b"))
    taking = asyncio.create_task(buffer.take())
    await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    gate.open.set()
    taken = await buffer.take()
    assert [texts(batch) for batch in (*store.batches, taken) if batch] == [["a"], ["b"]]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("delta"), st.sampled_from(["m1", "m2"])),
        st.tuples(st.just("progress"), st.sampled_from(["c1", "c2"])),
        st.tuples(st.sampled_from(["other", "step", "step", "take"]), st.just("")),
    ),
    max_size=60,
)


@pytest.mark.requirement("E2")
@given(actions=ACTIONS, slow=st.booleans())
async def test_however_adding_writing_and_taking_interleave_nothing_is_lost_doubled_or_out_of_order(
    actions: list[tuple[str, str]], slow: bool
) -> None:
    left: list[NewEvent] = []

    async def write(batch: Batch) -> None:
        left.extend(batch[: len(batch) // 2])
        if slow:
            await asyncio.sleep(0)
        left.extend(batch[len(batch) // 2 :])

    buffer = EventBuffer(write, interval_s=0)
    added: list[NewEvent] = []
    for number, (action, subject) in enumerate(actions):
        match action:
            case "delta":
                added.append(delta(f"{number} ", subject))
                buffer.add(added[-1])
            case "progress":
                added.append(progress(number, subject))
                buffer.add(added[-1])
            case "other":
                added.append(retrying())
                buffer.add(added[-1])
            case "step":
                await asyncio.sleep(0)
            case _:
                left.extend(await buffer.take())
    left.extend(await buffer.take())

    assert _told(left) == _told(added)
    for call_id in ("c1", "c2"):
        amounts = [event.data["progress"] for event in left if event.data.get("tool_call_id") == call_id]
        told = [event.data["progress"] for event in added if event.data.get("tool_call_id") == call_id]
        assert amounts == sorted(cast("list[int]", amounts))
        assert set(cast("list[int]", amounts)) <= set(cast("list[int]", told))
        assert amounts[-1:] == told[-1:]


def _told(events: list[NewEvent]) -> list[tuple[str, str]]:
    """Everything but progress, each message's neighbouring text joined."""
    told: list[tuple[str, str]] = []
    for event in events:
        if event.type is RunEventType.TOOL_PROGRESS:
            continue
        subject = cast(str, event.data.get("message_id", ""))
        text = cast(str, event.data.get("text", ""))
        if told and subject and told[-1][0] == subject:
            told[-1] = (subject, told[-1][1] + text)
        else:
            told.append((subject, text))
    return told


def test_a_closed_buffer_lets_go_of_what_writes() -> None:
    store = Store()
    watched = weakref.ref(store)
    buffer = EventBuffer(store.write)

    buffer.close()
    del store

    assert watched() is None
