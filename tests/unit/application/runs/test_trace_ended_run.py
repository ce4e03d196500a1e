"""TraceEndedRun: what tracing gets of a run that ended without a worker."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.runs.ports import RunReader
from application.runs.trace_ended_run import TraceEndedRun
from application.tracing.ports import Tracer
from domain.runs.ledger import ToolCall
from domain.tools.result import ToolResult
from tests.builders import ORG, RUN, a_displayable_call, a_settled_call, a_tool_call, after
from tests.refusals import storage_away
from tests.run_builders import CANARY, a_guarded_agent, an_ended_run

ENDED = an_ended_run()
DONE = ToolResult.succeeded("done")
ENDED_WITH_RUN = a_settled_call(a_tool_call(0, turn=2), DONE, at=after(1))
BY_CLIENT = a_settled_call(a_displayable_call(1, turn=2), DONE, at=after(0.5))
BY_WORKER = a_settled_call(a_tool_call(2, turn=2), DONE, at=after(0.5))
OF_AN_EARLIER_TURN = replace(ENDED_WITH_RUN, turn=1)


class Ports:
    """Mocks of what `TraceEndedRun` calls: tracing is on, and the agent has a canary token."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.runs.tool_calls.return_value = ()
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.get.return_value = a_guarded_agent()
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.tracer.enabled = True

    async def trace(self) -> None:
        await TraceEndedRun(runs=self.runs, agents=self.agents, tracer=self.tracer).execute(ENDED)

    @property
    def traced(self) -> list[ToolCall]:
        return [call.args[0].call for call in self.tracer.tool_call.call_args_list]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("G1")
async def test_calls_of_the_last_turn_that_no_worker_has_traced_come_before_the_end_of_the_run(ports: Ports) -> None:
    ports.runs.tool_calls.return_value = (OF_AN_EARLIER_TURN, ENDED_WITH_RUN, BY_CLIENT, BY_WORKER)

    await ports.trace()

    assert ports.traced == [ENDED_WITH_RUN, BY_CLIENT]
    ports.tracer.run_finished.assert_called_once_with(ENDED, a_guarded_agent())
    assert [name for name, *_ in ports.tracer.mock_calls] == ["tool_call", "tool_call", "run_finished"]


@pytest.mark.requirement("C4", "G1")
async def test_a_canary_token_in_a_result_is_not_traced(ports: Ports) -> None:
    ports.runs.tool_calls.return_value = (replace(BY_CLIENT, result=ToolResult.succeeded(f"It is {CANARY}.")),)

    await ports.trace()

    [call] = ports.traced
    assert call.result == ToolResult.succeeded("It is [canary:vault].")


@pytest.mark.requirement("G1")
async def test_without_tracing_nothing_is_read(ports: Ports) -> None:
    ports.tracer.enabled = False

    await ports.trace()

    ports.agents.get.assert_not_awaited()
    ports.runs.tool_calls.assert_not_awaited()
    ports.tracer.run_finished.assert_not_called()


@pytest.mark.requirement("G1")
async def test_the_run_of_a_deleted_agent_is_traced_without_it(ports: Ports) -> None:
    ports.agents.get.return_value = None
    ports.runs.tool_calls.return_value = (BY_CLIENT,)

    await ports.trace()

    assert ports.traced == [BY_CLIENT]
    ports.tracer.run_finished.assert_called_once_with(ENDED, None)


@pytest.mark.requirement("G1")
async def test_calls_that_cannot_be_read_are_left_out(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    ports.runs.tool_calls.side_effect = storage_away()

    await ports.trace()

    assert ports.traced == []
    ports.tracer.run_finished.assert_called_once_with(ENDED, a_guarded_agent())
    assert "the trace of an ended run is incomplete" in caplog.text


@pytest.mark.requirement("C4", "G1")
async def test_without_the_agent_whose_canary_tokens_are_unknown_no_call_is_traced(ports: Ports) -> None:
    ports.agents.get.side_effect = storage_away()

    await ports.trace()

    ports.runs.tool_calls.assert_not_awaited()
    ports.tracer.run_finished.assert_called_once_with(ENDED, None)


async def test_the_calls_of_the_run_are_read_for_its_organization(ports: Ports) -> None:
    await ports.trace()

    ports.runs.tool_calls.assert_awaited_once_with(ORG, RUN)
