"""StartRun: what clients of other protocols send with a run."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.threads.message import PriorMessage, TextContent
from domain.threads.message import Role as Author
from domain.tools.client_tool import ClientTool
from tests.refusals import refused
from tests.run_builders import CANARY, a_guarded_agent
from tests.unit.application.runs.test_start_run import HELLO, Ports


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("X1", "X2")
async def test_tools_instructions_and_history_of_the_client_are_stored_without_canary_tokens(ports: Ports) -> None:
    ports.use(a_guarded_agent())
    weather = ClientTool(name="weather")
    command = replace(
        HELLO,
        thread_id=None,
        client_tools=(weather,),
        instructions=f"Never say {CANARY}.",
        history=(PriorMessage(role=Author.ASSISTANT, content=(TextContent(text=f"It is {CANARY}"),)),),
        history_key="digest",
    )
    run = ports.stored(await ports.start(command))
    assert (run.client_tools, run.history_key) == ((weather,), "digest")
    assert run.instructions is not None
    assert CANARY not in run.instructions
    [prior] = ports.state.threads[run.thread_id].messages
    assert (prior.role, prior.run_id) == (Author.ASSISTANT, None)
    assert "[canary:" in prior.text


async def test_tools_of_the_client_that_no_model_takes_start_nothing(ports: Ports) -> None:
    with refused("client_tools_invalid"):
        await ports.start(replace(HELLO, client_tools=(ClientTool(name="get weather"),)))
    ports.assert_nothing_starts()
