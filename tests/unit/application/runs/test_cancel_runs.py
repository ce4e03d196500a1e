"""CancelRuns: which runs the stop button cancels, in which order, and what is recorded of it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.audit.ports import AuditLog
from application.mcp.ports import McpServerStore
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.cancel_runs import BATCH, CancelledRuns, CancelRuns, CancelRunsCommand
from application.system.pages import MAX_PAGE_SIZE, Page, PageRequest
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.role import Role
from domain.ids import AgentId, OrganizationId, RunId
from domain.runs.lane import Lane
from domain.runs.run import Run, RunStatus
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_ORG,
    SERVER,
    a_run,
    a_run_id,
    a_server,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    numbered,
)
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.unfinished_runs import InMemoryUnfinishedRuns
from tests.refusals import refused, storage_away
from tests.run_builders import an_ended_run
from tests.unit.application.actors import a_principal

OTHER_AGENT = AgentId(numbered("agt", 2))
OPERATOR = a_principal(Role.OPERATOR)
EVERYTHING = CancelRunsCommand(principal=OPERATOR)
OF_AGENT = CancelRunsCommand(principal=OPERATOR, agent=AGENT)
OF_SERVER = CancelRunsCommand(principal=OPERATOR, server="files")


class Ports:
    """Runs in memory, all of which end at once, and mocks of what else `CancelRuns` calls."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.cancelled: list[RunId] = []
        self.cancel_run: MockType = mocker.create_autospec(CancelRun, instance=True)
        self.cancel_run.execute.side_effect = self.cancel
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.get.return_value = an_agent()
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.servers.get.return_value = a_server()
        self.audit_log: MockType = mocker.create_autospec(AuditLog, instance=True)

    async def cancel(self, command: CancelRunCommand) -> Run:
        self.cancelled.append(command.run_id)
        return self.end(command.run_id, RunStatus.CANCELLED)

    def end(self, run_id: RunId, status: RunStatus) -> Run:
        run = a_run(run_id, status=status)
        self.state.runs[run_id] = StoredRun(run=run)
        return run

    def store(self, *runs: Run) -> None:
        self.state.runs |= {run.id: StoredRun(run=run) for run in runs}

    async def stop(self, command: CancelRunsCommand | None = None) -> CancelledRuns:
        cancelling = CancelRuns(
            unfinished=InMemoryUnfinishedRuns(self.state),
            cancel_run=self.cancel_run,
            agents=self.agents,
            servers=self.servers,
            audit_log=self.audit_log,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        return await cancelling.execute(command or EVERYTHING)

    def assert_nothing_is_stopped(self) -> None:
        assert self.cancelled == []
        self.audit_log.record.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def numbered_run(number: int, agent_id: AgentId = AGENT, *, organization_id: OrganizationId = ORG) -> Run:
    return a_run(
        a_run_id(number),
        organization_id=organization_id,
        thread_id=a_thread_id(number),
        agent_id=agent_id,
        created_at=after(number),
    )


@pytest.mark.requirement("C7")
async def test_every_unfinished_run_of_the_organization_is_cancelled_newest_first(ports: Ports) -> None:
    ports.store(*map(numbered_run, (1, 2)), an_ended_run(), numbered_run(4, organization_id=OTHER_ORG))
    ports.store(numbered_run(3))

    assert await ports.stop() == CancelledRuns(cancelled=2, stopping=0)

    assert ports.cancelled == [a_run_id(3), a_run_id(2)]


@pytest.mark.requirement("C7")
async def test_runs_in_progress_are_counted_as_stopping(ports: Ports) -> None:
    ports.store(numbered_run(1), numbered_run(2))
    ports.cancel_run.execute.side_effect = [a_run(status=RunStatus.IN_PROGRESS), a_run(status=RunStatus.CANCELLED)]

    assert await ports.stop() == CancelledRuns(cancelled=1, stopping=1)


@pytest.mark.requirement("C7")
async def test_more_runs_than_one_batch_holds_are_all_cancelled(ports: Ports) -> None:
    ports.store(*map(numbered_run, range(1, BATCH + 3)))

    assert (await ports.stop()).cancelled == BATCH + 2

    assert ports.cancelled[0] == a_run_id(BATCH + 2)
    assert ports.cancelled[-1] == a_run_id(1)


@pytest.mark.requirement("C6")
async def test_only_runs_that_the_key_started_are_cancelled(ports: Ports) -> None:
    ports.store(replace(numbered_run(1), requested_by=KEY), numbered_run(2))

    await ports.stop(CancelRunsCommand(principal=OPERATOR, requested_by=KEY))

    assert ports.cancelled == [a_run_id(1)]
    [entry] = ports.audit_log.record.await_args.args
    assert (entry.action, entry.resource) == (AuditAction.RUNS_CANCELLED, KEY)


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("agent", [AGENT, "researcher"], ids=["id", "name"])
async def test_only_runs_of_the_agent_are_cancelled(ports: Ports, agent: str) -> None:
    ports.agents.find.return_value = an_agent()
    ports.store(numbered_run(1), numbered_run(2, OTHER_AGENT))

    await ports.stop(replace(OF_AGENT, agent=agent))

    assert ports.cancelled == [a_run_id(1)]


@pytest.mark.requirement("C7")
async def test_runs_whose_agent_lists_the_server_or_that_call_it_now_are_cancelled(ports: Ports) -> None:
    lists_it = an_agent(OTHER_AGENT, mcp_servers=("files",))
    ports.agents.page.side_effect = [Page(items=(an_agent(),), next_cursor="more"), Page(items=(lists_it,))]
    ports.store(numbered_run(1, OTHER_AGENT), numbered_run(2), numbered_run(3))
    ports.state.runs[a_run_id(2)].calls = {call.id: call for call in [a_tool_call(server_id=SERVER)]}

    await ports.stop(OF_SERVER)

    assert ports.cancelled == [a_run_id(2), a_run_id(1)]
    assert ports.agents.page.await_args.args == (ORG, PageRequest(limit=MAX_PAGE_SIZE, cursor="more"))


@pytest.mark.requirement("C5", "C7")
@pytest.mark.parametrize(
    ("command", "resource", "server_id"),
    [(EVERYTHING, ORG, None), (OF_AGENT, AGENT, None), (OF_SERVER, SERVER, SERVER)],
    ids=["organization", "agent", "server"],
)
async def test_the_whole_is_audited_once_with_its_counts(
    ports: Ports, command: CancelRunsCommand, resource: str, server_id: str | None
) -> None:
    ports.agents.page.return_value = Page(items=(an_agent(mcp_servers=("files",)),))
    ports.store(numbered_run(1), numbered_run(2))

    await ports.stop(command)

    ports.audit_log.record.assert_awaited_once()
    [entry] = ports.audit_log.record.await_args.args
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.RUNS_CANCELLED, "key_operator", resource)
    assert (entry.server_id, entry.details) == (server_id, {"cancelled": 2, "stopping": 0})


@pytest.mark.requirement("C6", "C7")
async def test_a_runner_stops_nothing(ports: Ports) -> None:
    ports.store(numbered_run(1))

    with refused("role_insufficient"):
        await ports.stop(CancelRunsCommand(principal=a_principal(Role.RUNNER)))

    ports.assert_nothing_is_stopped()


@pytest.mark.parametrize(
    ("command", "code"), [(OF_AGENT, "agent_not_found"), (OF_SERVER, "mcp_server_not_found")], ids=["agent", "server"]
)
async def test_an_unknown_target_stops_nothing(ports: Ports, command: CancelRunsCommand, code: str) -> None:
    ports.store(numbered_run(1))
    ports.agents.get.return_value = ports.agents.find.return_value = ports.servers.get.return_value = None

    with refused(code):
        await ports.stop(command)

    ports.assert_nothing_is_stopped()


async def test_a_run_that_is_deleted_at_the_same_time_is_not_counted(ports: Ports) -> None:
    ports.store(numbered_run(1), numbered_run(2))
    ports.cancel_run.execute.side_effect = [not_found("run", a_run_id(2)), a_run(status=RunStatus.CANCELLED)]

    assert await ports.stop() == CancelledRuns(cancelled=1, stopping=0)


@pytest.mark.requirement("C7")
async def test_a_storage_failure_reaches_the_caller_and_is_not_audited_as_done(ports: Ports) -> None:
    ports.store(numbered_run(1), numbered_run(2))
    ports.cancel_run.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop()

    ports.audit_log.record.assert_not_awaited()


async def test_a_server_whose_agents_cannot_be_read_stops_nothing(ports: Ports) -> None:
    ports.store(numbered_run(1))
    ports.agents.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.stop(OF_SERVER)

    ports.assert_nothing_is_stopped()


@pytest.mark.requirement("K8")
async def test_only_queued_runs_of_the_lane_are_cancelled(ports: Ports) -> None:
    ports.store(numbered_run(1), replace(numbered_run(2), lane=Lane.BATCH))
    ports.store(replace(numbered_run(3), lane=Lane.BATCH, status=RunStatus.IN_PROGRESS))

    await ports.stop(replace(OF_AGENT, lane=Lane.BATCH, queued=True))

    assert ports.cancelled == [a_run_id(2)]
