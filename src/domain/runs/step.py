"""One atomic step of a run."""

from dataclasses import dataclass

from domain.approvals.approval import Approval, ApprovalOutcome
from domain.audit.event import AuditEvent
from domain.copies import with_changes
from domain.runs.events import NewEvent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.runs.usage import ModelSpending
from domain.threads.message import Message
from domain.threads.thread import Quarantine


@dataclass(frozen=True, kw_only=True)  # no slots: `with_changes` copies its fields at once
class Step:
    """One atomic step of a run: all of it is stored, or nothing.

    - `run` is the new state. `last_seq` and `cancel_requested_by` stay as stored; `lapses` is 0
      after a worker's step.
    - `events` get the next numbers in order; `messages` are appended to the thread.
    - `recorded` are new ledger entries. `changed` replace params, state, elicitation, input and
      approval of entries. `settled` are outcomes; they delete the entry's input.
    - `approvals` are stored with a timer each, unless the id exists. `outcomes` end pending
      approvals and their timers.
    - `audit` entries are stored unless the id exists. `spent` is added to the sums of its day.
    - `quarantine` closes the thread with the end of the run.
    """

    run: Run
    events: tuple[NewEvent, ...] = ()
    messages: tuple[Message, ...] = ()
    recorded: tuple[ToolCall, ...] = ()
    changed: tuple[ToolCall, ...] = ()
    settled: tuple[ToolCall, ...] = ()
    approvals: tuple[Approval, ...] = ()
    outcomes: tuple[ApprovalOutcome, ...] = ()
    audit: tuple[AuditEvent, ...] = ()
    spent: tuple[ModelSpending, ...] = ()
    quarantine: Quarantine | None = None

    def led_by(self, event: NewEvent, *, settled: ToolCall, audit: AuditEvent) -> "Step":
        """The same step with a settled call in front."""
        return with_changes(
            self,
            events=(event, *self.events),
            settled=(settled, *self.settled),
            audit=(audit, *self.audit),
        )
