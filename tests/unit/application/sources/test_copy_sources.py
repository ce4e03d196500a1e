"""CopySources: which files of a thread a fork gets, as what, and what is left if it cannot."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.sources.copy_sources import MAX_COPIED_BYTES, CopySources
from application.sources.ports import SourceCopies
from domain.errors import not_found
from domain.ids import SourceId
from domain.sources.source import Source
from tests.builders import ORG, RUN, THREAD, a_thread, a_thread_id, after
from tests.doubles.sources import InMemorySourceCopies, InMemorySourceIntake, InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_source import StoredSource
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.unit.application.actors import a_principal
from tests.unit.application.sources.files import a_source, a_stored_source

pytestmark = pytest.mark.requirement("U6", "D4")
FORK = a_thread_id(7)


class Threads:
    """A thread with these files, and its fork, which has none."""

    def __init__(self, *stored: StoredSource, copies: SourceCopies | None = None) -> None:
        self.state = InMemoryState()
        for thread in (a_thread(), a_thread(FORK)):
            self.state.threads[thread.id] = StoredThread(thread=thread)
        self.state.sources = {each.source.id: each for each in stored}
        self.sources = InMemorySourceStore(self.state)
        ids = SequentialIds()
        for _ in range(5):
            ids.new("src")  # those of the thread
        self.use_case = CopySources(
            sources=self.sources,
            intake=InMemorySourceIntake(self.state),
            copies=copies or InMemorySourceCopies(self.state),
            clock=FixedClock(),
            ids=ids,
        )

    async def of_fork(self) -> tuple[Source, ...]:
        return await self.sources.of_thread(ORG, FORK)


async def test_a_copy_has_all_of_its_original_but_the_id_and_the_run_and_is_audited() -> None:
    stored = a_stored_source(1, "walrus", name="a.txt", parts=(b"abc", b"def"))
    threads = Threads(replace(stored, source=replace(stored.source, run_id=RUN)))

    await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(60))

    [copy] = await threads.of_fork()
    assert copy == replace(stored.source, id=copy.id, thread_id=FORK)
    assert copy.id != stored.source.id
    found = threads.state.sources[copy.id]
    assert (found.parts, found.chunks) == (stored.parts, stored.chunks)
    [entry] = threads.state.audit.values()
    assert (entry.action.value, entry.resource) == ("source.added", copy.id)
    assert (entry.details["copy_of"], entry.details["thread_id"]) == (stored.source.id, FORK)


async def test_later_files_are_not_copied() -> None:
    threads = Threads(*(a_stored_source(number, name=f"{number}.txt") for number in (1, 2, 3)))

    await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(2))

    assert [each.name for each in await threads.of_fork()] == ["2.txt", "1.txt"]


async def test_a_file_that_is_deleted_meanwhile_is_left_out(mocker: MockerFixture) -> None:
    copies = mocker.create_autospec(SourceCopies, instance=True)
    copies.fill.side_effect = (False, True)
    threads = Threads(a_stored_source(1, name="gone.txt"), a_stored_source(2, name="there.txt"), copies=copies)

    await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(60))

    assert [each.name for each in await threads.of_fork()] == ["there.txt"]
    assert [each.source.name for each in threads.state.sources.values()] == ["gone.txt", "there.txt", "there.txt"]


async def test_what_fails_leaves_no_draft(mocker: MockerFixture) -> None:
    copies = mocker.create_autospec(SourceCopies, instance=True)
    copies.fill.side_effect = not_found("source", SourceId("src_x"))
    threads = Threads(a_stored_source(1), copies=copies)

    with refused("source_not_found"):
        await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(60))

    assert len(threads.state.sources) == 1


async def test_too_many_bytes_in_sum_are_rejected_before_anything_is_copied() -> None:
    half = MAX_COPIED_BYTES // 2
    threads = Threads(
        *(
            StoredSource(source=a_source(number, size=size), finished=True)
            for number, size in ((1, half), (2, half), (3, 1))
        )
    )

    with refused("fork_sources_too_large"):
        await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(60))
    assert await threads.of_fork() == ()

    await threads.use_case.execute(a_principal(), THREAD, FORK, until=after(2))
    assert len(await threads.of_fork()) == 2
