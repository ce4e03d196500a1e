"""What runs in memory have left behind, read back by run and by thread."""

from domain.audit.event import AuditEvent
from domain.ids import RunId, ThreadId
from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.threads.message import Message
from tests.builders import THREAD
from tests.doubles.state import InMemoryState


class RunRecords:
    """Runs, transcripts, events, ledger and audit of the tables in memory."""

    def __init__(self, state: InMemoryState) -> None:
        self.state = state

    def run(self, run_id: RunId) -> Run:
        return self.state.runs[run_id].run

    def transcript(self, thread_id: ThreadId = THREAD) -> tuple[Message, ...]:
        return self.state.threads[thread_id].transcript()

    def roles(self, thread_id: ThreadId = THREAD) -> list[str]:
        return [message.role.value for message in self.transcript(thread_id)]

    def results(self, thread_id: ThreadId = THREAD) -> list[str]:
        """All tool results of the thread, in order."""
        return [result.result for message in self.transcript(thread_id) for result in message.tool_results]

    def events(self, run_id: RunId) -> list[RunEvent]:
        return list(self.state.runs[run_id].events)

    def types(self, run_id: RunId) -> list[str]:
        return [event.type.value for event in self.events(run_id)]

    def of_type(self, run_id: RunId, kind: RunEventType) -> list[JsonObject]:
        """What the events of a type carry."""
        return [event.data for event in self.events(run_id) if event.type is kind]

    def ledger(self, run_id: RunId) -> list[ToolCall]:
        return sorted(self.state.runs[run_id].calls.values(), key=lambda entry: (entry.turn, entry.index))

    def audit(self, run_id: RunId) -> list[AuditEvent]:
        return [entry for entry in self.state.audit.values() if entry.run_id == run_id]

    def actions(self, run_id: RunId) -> list[str]:
        return [entry.action.value for entry in self.audit(run_id)]
