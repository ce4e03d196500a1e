"""Rows kept in memory by one of several processes: whatever arrives late, or never, nobody is told
what has not been true for more than a second."""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.ids import OrganizationId
from infrastructure.events.row_notifications import FRESH_S, RowNotifications
from infrastructure.persistence.cached.read_through import CachedReads, ReadThrough
from tests.builders import ORG, OTHER_ORG

KEYS = ((ORG, "a"), (ORG, "b"), (OTHER_ORG, "a"))
FEW = KEYS[::2]
Key = tuple[OrganizationId, str]


@dataclass
class Rows:
    """A table, and how often it was read."""

    values: dict[Key, str] = field(default_factory=lambda: dict.fromkeys(KEYS, "first"))
    reads: int = 0

    async def read(self, key: Key) -> str | None:
        self.reads += 1
        return self.values.get(key)


class Things:
    """The store of that table; a test may read in its own way."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.read: Callable[[Key], Awaitable[str | None]] = rows.read

    async def get(self, organization_id: OrganizationId, name: str) -> str | None:
        return await self.read((organization_id, name))

    async def put(self, organization_id: OrganizationId, name: str, value: str) -> None:
        if not value:
            raise ValueError("a thing has a value")
        self.rows.values[(organization_id, name)] = value

    async def count(self, organization_id: OrganizationId) -> int:
        return sum(key[0] == organization_id for key in self.rows.values)


THINGS = CachedReads(table="thing", reads=(Things.get,), writes=(Things.put,), capacity=10)


class Clock:
    """Stands still unless it is told to go."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Harness:
    """A cache over a table, with its feed."""

    def __init__(self, *, shared: bool = True) -> None:
        self.clock = Clock()
        self.rows = Rows()
        self.feed = RowNotifications(shared=shared, monotonic=self.clock)
        self.store = Things(self.rows)
        views = ReadThrough(self.store, THINGS, notifications=self.feed)
        self.cached, self.fresh = views.cached, views.fresh

    async def get(self, key: Key = KEYS[0]) -> str | None:
        return await self.cached.get(*key)

    def beat(self) -> None:
        self.feed.heard(self.feed.beat())


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.beat()
    return harness


async def test_a_row_is_read_once_while_the_feed_is_fresh(harness: Harness) -> None:
    assert [await harness.get(), await harness.get()] == ["first", "first"]
    assert harness.rows.reads == 1


async def test_a_process_that_has_its_database_alone_needs_no_feed() -> None:
    harness = Harness(shared=False)
    await harness.get()
    harness.clock.now += 3600
    await harness.get()
    assert harness.rows.reads == 1


@pytest.mark.requirement("E6", "C6")
async def test_a_process_whose_feed_has_been_silent_for_a_second_reads_again(harness: Harness) -> None:
    await harness.get()
    harness.rows.values[KEYS[0]] = "changed"
    harness.clock.now += FRESH_S
    assert await harness.get() == "first", "a second is what it may lag"
    harness.clock.now += 0.001
    assert await harness.get() == "changed"


async def test_before_the_first_heartbeat_nothing_is_taken_from_memory() -> None:
    harness = Harness()
    await harness.get()
    await harness.get()
    assert harness.rows.reads == 2


async def test_a_heartbeat_vouches_for_the_time_it_was_sent_at_not_for_that_of_its_arrival(harness: Harness) -> None:
    await harness.get()
    late = harness.feed.beat()
    harness.clock.now += 5
    harness.feed.heard(late)
    await harness.get()
    assert harness.rows.reads == 2


async def test_a_change_that_is_heard_of_is_read_and_only_that_organization_s_rows_are(harness: Harness) -> None:
    for key in KEYS:
        await harness.get(key)
    harness.rows.values[KEYS[0]] = "changed"
    harness.feed.changed("thing", ORG)
    assert [await harness.get(key) for key in KEYS] == ["changed", "first", "first"]
    assert harness.rows.reads == 5
    harness.feed.changed("another", ORG)
    await harness.get()
    assert harness.rows.reads == 5


async def test_after_an_interruption_nothing_of_before_counts(harness: Harness) -> None:
    await harness.get()
    harness.rows.values[KEYS[0]] = "changed"
    harness.feed.interrupted()
    harness.beat()
    assert await harness.get() == "changed"


@pytest.mark.parametrize("event", ["changed", "interrupted", "written"])
async def test_what_is_being_read_while_a_change_is_heard_of_is_not_kept(harness: Harness, event: str) -> None:
    async def read_late(_: Key) -> str:
        before = harness.rows.values[KEYS[0]]
        harness.rows.values[KEYS[0]] = "changed"
        match event:
            case "changed":
                harness.feed.changed("thing", ORG)
            case "interrupted":
                harness.feed.interrupted()
                harness.beat()
            case _:
                await harness.cached.put(*KEYS[0], "changed")
        return before

    harness.store.read = read_late
    assert await harness.get() == "first"
    harness.store.read = harness.rows.read
    assert await harness.get() == "changed"


async def test_a_fresh_read_reads_the_database_and_a_write_through_either_view_drops_what_is_cached(
    harness: Harness,
) -> None:
    await harness.get()
    harness.rows.values[KEYS[0]] = "changed"
    assert (await harness.fresh.get(*KEYS[0]), await harness.get()) == ("changed", "first")
    await harness.fresh.put(*KEYS[0], "again")
    assert await harness.get() == "again"
    await harness.cached.put(*KEYS[0], "last")
    assert await harness.get() == "last"


async def test_a_write_that_fails_drops_what_is_cached_as_it_may_have_been_stored(harness: Harness) -> None:
    await harness.get()
    harness.rows.values[KEYS[0]] = "changed"
    with pytest.raises(ValueError, match="a thing has a value"):
        await harness.cached.put(*KEYS[0], "")
    assert await harness.get() == "changed"


async def test_what_is_not_there_is_looked_for_again(harness: Harness) -> None:
    del harness.rows.values[KEYS[0]]
    assert await harness.get() is None
    harness.rows.values[KEYS[0]] = "late"
    assert await harness.get() == "late"


async def test_methods_that_are_neither_cached_nor_writes_are_those_of_the_store(harness: Harness) -> None:
    assert (await harness.cached.count(ORG), await harness.fresh.count(ORG)) == (2, 2)
    with pytest.raises(AttributeError):
        getattr(harness.cached, "absent")  # noqa: B009  # mypy knows that it is not there


class Pause:
    """Lets a coroutine stop until it is sent on."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass
class Reading:
    """A read under way: what the database showed it, and what was true since it may look back."""

    key: Key
    began: float
    seen: str | None
    task: Coroutine[object, object, str | None]


class KeptRows(RuleBasedStateMachine):
    """One process that keeps rows, others that change them, and a connection between them that is
    slow, breaks, and comes back without what was said meanwhile. Every answer was true at some
    moment of the last second before it was asked for, or later."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness()
        self.history: dict[Key, list[tuple[float, str | None]]] = {key: [(0.0, "first")] for key in KEYS}
        self.wire: deque[tuple[str, str]] | None = deque()
        self.reading: Reading | None = None
        self.answered: tuple[Key, float, str | None] | None = None

    @rule(key=st.sampled_from(FEW), value=st.sampled_from(["x", "y", "z", None]))
    def others_change(self, key: Key, value: str | None) -> None:
        if value is None:
            self.harness.rows.values.pop(key, None)
        else:
            self.harness.rows.values[key] = value
        self.history[key].append((self.harness.clock.now, value))
        if self.wire is not None:
            self.wire.append(("changed", key[0]))

    @rule(seconds=st.sampled_from([0.1, 0.4, 0.9, 1.5]))
    def time_passes(self, seconds: float) -> None:
        self.harness.clock.now += seconds

    @precondition(lambda self: self.wire is not None)
    @rule()
    def the_heart_beats(self) -> None:
        assert self.wire is not None
        self.wire.append(("beat", self.harness.feed.beat()))

    @precondition(lambda self: self.wire)
    @rule(count=st.sampled_from([1, 100]))
    def something_arrives(self, count: int) -> None:
        for _ in range(min(count, len(self.wire or ()))):
            assert self.wire is not None
            kind, payload = self.wire.popleft()
            if kind == "beat":
                self.harness.feed.heard(payload)
            else:
                self.harness.feed.changed("thing", OrganizationId(payload))

    @precondition(lambda self: self.wire is not None)
    @rule()
    def all_is_well_for_a_while(self) -> None:
        self.harness.clock.now += 2 * FRESH_S
        self.the_heart_beats()
        self.something_arrives(len(self.wire or ()))

    @precondition(lambda self: self.wire is not None)
    @rule()
    def the_connection_breaks(self) -> None:
        self.wire = None

    @precondition(lambda self: self.wire is None)
    @rule()
    def the_connection_is_back(self) -> None:
        self.wire = deque()
        self.harness.feed.interrupted()

    @precondition(lambda self: self.reading is None)
    @rule(key=st.sampled_from(FEW))
    def a_read_is_done_at_once(self, key: Key) -> None:
        self.a_read_begins(key)
        if self.reading is not None:
            self.a_read_ends()

    @precondition(lambda self: self.reading is None)
    @rule(key=st.sampled_from(FEW))
    def a_read_begins(self, key: Key) -> None:
        snapshot = self.harness.rows.values.get(key)

        async def load(_: Key) -> str | None:
            await Pause()
            return snapshot

        self.harness.store.read = load
        task = self.harness.cached.get(*key)
        began = self.harness.clock.now
        try:
            task.send(None)
        except StopIteration as done:
            self.answered = (key, began, done.value)
            return
        self.reading = Reading(key, began, snapshot, task)

    @precondition(lambda self: self.reading is not None)
    @rule()
    def a_read_ends(self) -> None:
        reading, self.reading = self.reading, None
        assert reading is not None
        with pytest.raises(StopIteration) as done:
            reading.task.send(None)
        self.answered = (reading.key, reading.began, done.value.value)

    @invariant()
    def answers_are_true_or_were_a_second_ago(self) -> None:
        if self.answered is None:
            return
        key, began, value = self.answered
        self.answered = None
        since = began - FRESH_S
        changes = self.history[key]
        before = [change for change in changes if change[0] < since]
        allowed = [*before[-1:], *(change for change in changes if change[0] >= since)]
        assert value in [candidate for _, candidate in allowed]


TestKeptRows = KeptRows.TestCase
TestKeptRows.settings = settings(max_examples=300)


async def test_who_watches_is_told_of_what_is_written_here_and_heard_of_once_nothing_from_before_is_kept() -> None:
    harness = Harness()
    harness.beat()
    told: list[tuple[OrganizationId | None, str | None]] = []

    def watch(organization_id: OrganizationId | None) -> None:
        reading = harness.cached.get(*(KEYS[2] if organization_id == OTHER_ORG else KEYS[0]))
        with pytest.raises(StopIteration) as read:
            reading.send(None)
        told.append((organization_id, read.value.value))

    harness.feed.watch(watch, "thing")
    await harness.get()
    await harness.cached.put(*KEYS[0], "second")
    await harness.get(KEYS[2])
    await harness.fresh.put(*KEYS[2], "third")
    harness.rows.values[KEYS[0]] = "fourth"
    harness.feed.changed("thing", ORG)
    harness.feed.changed("other", ORG)
    harness.rows.values[KEYS[0]] = "fifth"
    harness.feed.interrupted()

    assert told == [(ORG, "second"), (OTHER_ORG, "third"), (ORG, "fourth"), (None, "fifth")]
