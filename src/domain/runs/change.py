"""A change to a run without a worker's lease: the facts for the decision, and the decision.

A store locks the run, loads the facts, calls the decision and stores its result, in one
transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.runs.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A locked run. `open_calls` are calls without an answering message; they are not loaded while
    a worker executes the run. `queued_behind`: another run of the thread waits for this
    suspended run."""

    run: Run
    open_calls: tuple[ToolCall, ...] = ()
    queued_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A change of `run`: a `step`, or a request to its worker to stop (`stop_requested_by`).
    `rolls_back`: the run's messages are superseded once it has ended."""

    run: Run
    step: Step | None = None
    stop_requested_by: str | None = None
    rolls_back: bool = False

    @property
    def changed_run(self) -> Run:
        """The run after the change, without the numbers of its new events."""
        if self.step is not None:
            return self.step.run
        return replace(self.run, cancel_requested_by=self.stop_requested_by)


Decide = Callable[[RunFacts], RunChange | None]
"""A pure decision; None leaves the run unchanged. A ServiceError refuses the change, and nothing is
stored."""
