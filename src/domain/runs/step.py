"""One atomic advance of a claimed run."""

from dataclasses import dataclass, replace

from domain.approvals.approval import Approval, ApprovalOutcome
from domain.audit.event import AuditEvent
from domain.runs.events import NewEvent
from domain.runs.ledger import Settlement, ToolCall
from domain.runs.run import Run
from domain.runs.usage import ModelSpending
from domain.threads.message import Message
from domain.threads.thread import Quarantine


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One atomic advance of a claimed run: everything in it is stored, or nothing.

    `run` is the state after the step, without `last_seq` and `cancel_requested_by`, which stay as stored, and `lapses`,
    which is 0 after any step of a worker. Events get the
    next numbers in order. `messages` are appended to the thread. `recorded` are new ledger entries, `changed` known ones
    whose params, state, elicitation, input and approval are replaced, `settled` outcomes of calls recorded before or in this
    step, whose input is forgotten. `approvals` are new and get a timer each (a known id is left alone), `outcomes` end those
    that are pending, with their timers, and leave others alone. Audit entries whose id is known already are left out. What was `spent` is added to its day's sums.
    `quarantine` closes the thread with the end of the run.
    """

    run: Run
    events: tuple[NewEvent, ...] = ()
    messages: tuple[Message, ...] = ()
    recorded: tuple[ToolCall, ...] = ()
    changed: tuple[ToolCall, ...] = ()
    settled: tuple[Settlement, ...] = ()
    approvals: tuple[Approval, ...] = ()
    outcomes: tuple[ApprovalOutcome, ...] = ()
    audit: tuple[AuditEvent, ...] = ()
    spent: tuple[ModelSpending, ...] = ()
    quarantine: Quarantine | None = None

    def led_by(self, event: NewEvent, *, settled: Settlement, audit: AuditEvent) -> "Step":
        """The same step with a settlement before everything else in it."""
        return replace(
            self,
            events=(event, *self.events),
            settled=(settled, *self.settled),
            audit=(audit, *self.audit),
        )
