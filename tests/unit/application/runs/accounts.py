"""Accounts that people connect while runs wait for them, over tables in memory."""

from application.runs.resume_authorized_runs import ResumeAuthorizedRuns
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.secrets.secret_box import SecretBox
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.unit.application.runs.doubles import SubmittedRuns


class AccountsOfRuns:
    """`authorizer` knows who has connected an account; `resuming` continues the runs that wait for
    one."""

    def __init__(
        self,
        state: InMemoryState,
        queue: SubmittedRuns,
        box: SecretBox,
        wakeups: InProcessWakeups,
        clock: FixedClock,
    ) -> None:
        self.authorizer = InMemoryAuthorizer(expires_at=clock.now())
        runs = InMemoryRunStore(state, wakeups)
        self.resuming = ResumeAuthorizedRuns(
            runs=runs,
            reader=runs,
            queue=queue,
            servers=InMemoryMcpServerStore(state),
            authorizer=self.authorizer,
            box=box,
            wakeups=wakeups,
            clock=clock,
        )
