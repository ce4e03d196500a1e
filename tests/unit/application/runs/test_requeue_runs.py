"""RequeueRuns: which runs are taken from their workers, and what is recorded of it."""

from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.audit.ports import AuditLog
from application.runs.ports import RunLeases, RunQueue
from application.runs.queue_lines import QueueReader, StuckRun
from application.runs.requeue_runs import MOST, RequeueRuns, RequeueRunsCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.lease import Lease
from tests.builders import AGENT, ORG, START, a_run_id, a_thread_id, an_agent
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.unit.application.actors import a_principal

OPERATOR = a_principal(Role.OPERATOR)


class Ports:
    """Mocks of what `RequeueRuns` calls, with two stuck runs."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.lines: MockType = mocker.create_autospec(QueueReader, instance=True)
        self.lines.stuck.return_value = (stuck(1), stuck(2))
        self.leases: MockType = mocker.create_autospec(RunLeases, instance=True)
        self.leases.take_back.return_value = True
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.get.return_value = an_agent()
        self.audit_log: MockType = mocker.create_autospec(AuditLog, instance=True)

    async def requeue(self, command: RequeueRunsCommand) -> tuple[RunId, ...]:
        requeuing = RequeueRuns(
            lines=self.lines,
            leases=self.leases,
            queue=self.queue,
            agents=self.agents,
            audit_log=self.audit_log,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        return await requeuing.execute(command)


def stuck(number: int) -> StuckRun:
    lease = Lease(run_id=a_run_id(number), organization_id=ORG, thread_id=a_thread_id(number), epoch=number)
    return StuckRun(lease=lease, last_seq=number)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("K8")
async def test_runs_without_an_event_lose_their_workers_and_are_submitted(ports: Ports) -> None:
    found = await ports.requeue(RequeueRunsCommand(principal=OPERATOR, idle_s=900))
    assert found == (a_run_id(1), a_run_id(2))
    ports.lines.stuck.assert_awaited_once_with(
        ORG, since=FixedClock().now() - timedelta(seconds=900), agent_id=None, limit=MOST, teams=None
    )
    ports.queue.submit.assert_awaited_once_with(a_run_id(1), a_run_id(2))
    assert [call.kwargs["seen_seq"] for call in ports.leases.take_back.await_args_list] == [1, 2]
    [entry] = ports.audit_log.record.await_args.args
    assert (entry.action, entry.resource, entry.details) == (AuditAction.RUNS_REQUEUED, ORG, {"requeued": 2})


@pytest.mark.requirement("K8")
async def test_a_run_that_progressed_meanwhile_stays_with_its_worker(ports: Ports) -> None:
    ports.leases.take_back.side_effect = [False, True]
    assert await ports.requeue(RequeueRunsCommand(principal=OPERATOR, idle_s=60)) == (a_run_id(2),)
    ports.queue.submit.assert_awaited_once_with(a_run_id(2))


@pytest.mark.requirement("K8")
async def test_what_was_requeued_before_a_failure_is_submitted_and_audited(ports: Ports) -> None:
    ports.leases.take_back.side_effect = [
        True,
        ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is away."),
    ]
    with refused("storage_unavailable"):
        await ports.requeue(RequeueRunsCommand(principal=OPERATOR, idle_s=60))
    ports.queue.submit.assert_awaited_once_with(a_run_id(1))
    [entry] = ports.audit_log.record.await_args.args
    assert entry.details == {"requeued": 1}


@pytest.mark.requirement("K8")
async def test_only_runs_of_the_agent_are_requeued_and_only_by_operators(ports: Ports) -> None:
    await ports.requeue(RequeueRunsCommand(principal=OPERATOR, idle_s=60, agent=AGENT))
    assert ports.lines.stuck.await_args.kwargs["agent_id"] == AGENT
    ports.leases.take_back.reset_mock()
    with refused("role_insufficient"):
        await ports.requeue(RequeueRunsCommand(principal=a_principal(Role.RUNNER), idle_s=60))
    ports.leases.take_back.assert_not_awaited()
    assert FixedClock().now() >= START
