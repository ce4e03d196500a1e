"""StopWorkOfKey: which sessions and runs end with a key, in which order, and what goes on."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.sessions.revoke_session import RevokeGatewaySession, RevokeGatewaySessionCommand
from application.revocation.end_sessions import EndSessions, EndSessionsCommand
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.stopped_work import StoppedWork
from application.runs.cancel_runs import CancelledRuns, CancelRuns, CancelRunsCommand
from application.system.pages import MAX_PAGE_SIZE
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.errors import not_found
from domain.identity.role import Role
from domain.ids import ApiKeyId, GatewaySessionId, WorkflowRunId
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import KEY, OTHER_ORG, START, after, numbered
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.doubles.state import InMemoryState
from tests.doubles.stored_gateway_session import StoredGatewaySession
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.surroundings import FixedClock
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.gateway_builders import a_gateway_session
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.workflow_builders import a_workflow_run

OTHER_KEY = ApiKeyId("key_other")


class Ports:
    """Sessions and workflow runs in memory, and mocks of what ends them."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.ended: list[str] = []
        self.end_sessions: MockType = mocker.create_autospec(EndSessions, instance=True)
        self.revoke_session: MockType = mocker.create_autospec(RevokeGatewaySession, instance=True)
        self.revoke_session.execute.side_effect = self.revoked
        self.stop_workflow_run: MockType = mocker.create_autospec(StopWorkflowRun, instance=True)
        self.stop_workflow_run.execute.side_effect = self.stopped
        self.cancel_runs: MockType = mocker.create_autospec(CancelRuns, instance=True)
        self.cancel_runs.execute.side_effect = self.cancelled

    async def revoked(self, command: RevokeGatewaySessionCommand) -> None:
        self.ended.append(command.session_id)
        stored = self.state.gateway_sessions[command.session_id]
        stored.session = replace(stored.session, revoked_at=START)

    async def stopped(self, command: StopWorkflowRunCommand) -> WorkflowRun:
        self.ended.append(command.run_id)
        return a_workflow_run(id=command.run_id)

    async def cancelled(self, _: CancelRunsCommand) -> CancelledRuns:
        self.ended.append("runs")
        return CancelledRuns(cancelled=2, stopping=1)

    def a_session(self, number: int, **fields: object) -> GatewaySessionId:
        session = replace(a_gateway_session(number, token_hash=f"hash{number}"), **{"created_by": KEY, **fields})  # type: ignore[arg-type]
        self.state.gateway_sessions[session.id] = StoredGatewaySession(session=session)
        return session.id

    def a_workflow_run(self, number: int, **fields: object) -> WorkflowRunId:
        run = replace(a_workflow_run(id=WorkflowRunId(numbered("wfr", number))), **fields)  # type: ignore[arg-type]
        self.state.workflow_runs[run.id] = StoredWorkflowRun(run=run)
        return run.id

    async def stop(self) -> StoppedWork:
        stopping = StopWorkOfKey(
            end_sessions=self.end_sessions,
            sessions=InMemoryGatewaySessionStore(self.state),
            revoke_session=self.revoke_session,
            workflow_runs=InMemoryWorkflowRunStore(self.state, InProcessWakeups()),
            stop_workflow_run=self.stop_workflow_run,
            cancel_runs=self.cancel_runs,
            clock=FixedClock(),
        )
        return await stopping.execute(a_principal(), KEY)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C6")
async def test_what_starts_runs_ends_before_the_runs_of_the_key(ports: Ports) -> None:
    session_id, run_id = ports.a_session(1), ports.a_workflow_run(1)

    assert await ports.stop() == StoppedWork(runs=3, workflow_runs=1, gateway_sessions=1)

    assert ports.ended == [session_id, run_id, "runs"]
    able = a_principal(Role.ADMIN)
    ports.cancel_runs.execute.assert_awaited_once_with(CancelRunsCommand(principal=able, requested_by=KEY))
    ports.end_sessions.execute.assert_awaited_once_with(EndSessionsCommand(principal=able, holder=KEY))


@pytest.mark.requirement("C6")
async def test_what_other_keys_started_and_what_has_ended_stays(ports: Ports) -> None:
    ports.a_session(1, created_by=OTHER_KEY)
    ports.a_session(2, organization_id=OTHER_ORG)
    ports.a_session(3, revoked_at=START)
    ports.a_session(4, expires_at=START)
    ports.a_workflow_run(1, requested_by=OTHER_KEY)
    ports.a_workflow_run(2, organization_id=OTHER_ORG)
    ports.a_workflow_run(3, status=WorkflowRunStatus.COMPLETED, finished_at=after(1))

    stopped = await ports.stop()

    assert (stopped.workflow_runs, stopped.gateway_sessions, ports.ended) == (0, 0, ["runs"])


async def test_more_than_a_page_of_each_is_ended(ports: Ports) -> None:
    for number in range(MAX_PAGE_SIZE + 1):
        ports.a_session(number)
        ports.a_workflow_run(number)

    stopped = await ports.stop()

    assert (stopped.workflow_runs, stopped.gateway_sessions) == (MAX_PAGE_SIZE + 1, MAX_PAGE_SIZE + 1)


async def test_a_workflow_run_that_is_deleted_meanwhile_is_passed_over(ports: Ports) -> None:
    ports.a_workflow_run(1)
    ports.stop_workflow_run.execute.side_effect = not_found("workflow run", "wfr_1")

    assert (await ports.stop()).workflow_runs == 0


@pytest.mark.parametrize("failing", ["revoke_session", "end_sessions", "stop_workflow_run", "cancel_runs"])
async def test_a_failure_is_reported(ports: Ports, failing: str) -> None:
    ports.a_session(1)
    ports.a_workflow_run(1)
    getattr(ports, failing).execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop()
