"""What ended with an API key. Read by the use cases of this slice, and by the views of the command line."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedWork:
    """Runs and workflow runs are cancelled, or end once their workers have stopped."""

    runs: int
    workflow_runs: int
    gateway_sessions: int
