"""Builders of stored threads for tests of use cases."""

from domain.runs.run import Run
from domain.threads.message import Message
from domain.threads.thread import Quarantine, Thread
from tests.builders import RUN, START, a_thread
from tests.doubles.state import InMemoryState, StoredRun, StoredThread
from tests.doubles.threads import InMemoryThreadStore


def stored_threads(
    *messages: Message, thread: Thread | None = None, run: Run | None = None
) -> tuple[InMemoryThreadStore, InMemoryState]:
    """A store with one thread, its messages, and a run on it; and the tables that the store
    writes."""
    thread = thread or a_thread()
    state = InMemoryState()
    state.threads[thread.id] = StoredThread(thread=thread, messages=list(messages))
    if run is not None:
        state.runs[run.id] = StoredRun(run=run)
    return InMemoryThreadStore(state), state


def a_quarantine() -> Quarantine:
    """The quarantine of a thread on which the token `vault` halted `a_run()`."""
    return Quarantine(run_id=RUN, canary_id="vault", at=START)
