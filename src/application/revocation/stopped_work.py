"""What ended with an API key or a user's access. Read by the use cases of this slice, and by the
views of the command line."""

from dataclasses import dataclass

from domain.identity.user import User


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedWork:
    """Runs and workflow runs are cancelled, or end once their workers have stopped."""

    runs: int
    workflow_runs: int
    gateway_sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedUser:
    """The user, and what ended with their access."""

    user: User
    stopped: StoppedWork
