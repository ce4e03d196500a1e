"""What must hold for every run at rest, whatever happened to it."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from domain.ids import RunId
from domain.runs.events import RunEvent, RunEventType
from domain.threads.message import Role
from tests.unit.application.runs.harness import RunHarness


def assert_consistent(harness: RunHarness, *run_ids: RunId) -> None:
    """Holds for every run at rest: events without gaps, and one result for each call, right after
    its message."""
    for run_id in run_ids:
        run = harness.run(run_id)
        seqs = [event.seq for event in harness.events(run_id)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert run.last_seq == len(seqs)
        messages = [m for m in harness.state.threads[run.thread_id].messages if m.run_id == run_id]
        asked = [use.id for message in messages for use in message.tool_uses]
        answered = Counter(result.tool_id for message in messages for result in message.tool_results)
        pending = {use.id for use in run.pending}
        open_ids = {use.id for use in messages[-1].tool_uses} if run.pending else set()
        assert pending <= open_ids
        assert answered.keys() == set(asked) - open_ids
        assert all(count == 1 for count in answered.values())
        for before, after in pairwise(messages):
            if before.tool_uses:
                assert after.role is Role.TOOL
                assert [use.id for use in before.tool_uses] == [result.tool_id for result in after.tool_results]
        assert [entry.id for entry in harness.ledger(run_id)] == asked
        if run.status.is_terminal:
            assert all(entry.result is not None for entry in harness.ledger(run_id))
        begun = _begun_messages(harness.events(run_id))
        assert begun <= {message.id for message in messages}, "a message was begun, and neither stored nor discarded"


def _begun_messages(events: Iterable[RunEvent]) -> set[object]:
    """Messages with published pieces that were not discarded."""
    begun: set[object] = set()
    for event in events:
        if event.type is RunEventType.MESSAGE_DELTA:
            begun.add(event.data["message_id"])
        elif event.type is RunEventType.MESSAGE_DISCARDED:
            begun.discard(event.data["message_id"])
    return begun
