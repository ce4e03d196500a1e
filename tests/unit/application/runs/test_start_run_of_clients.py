"""StartRun: what clients of other protocols send with a run."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.json_value import JsonObject, canonical_json
from domain.threads.message import PriorMessage, TextContent
from domain.threads.message import Role as Author
from domain.tools.client_tool import MAX_CLIENT_BYTES, ClientTool
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


@pytest.mark.requirement("X2", "C4")
async def test_a_clients_tools_and_what_answers_repeat_of_its_request_contain_no_canary_tokens(ports: Ports) -> None:
    ports.use(a_guarded_agent())
    told = f"It is {CANARY}."
    parameters: JsonObject = {"type": "object", "properties": {"city": {"type": "string", "description": told}}}
    tool = ClientTool(name="weather", description=told, parameters=parameters)
    request: JsonObject = {"instructions": told, "tools": [{"name": "weather", "parameters": parameters}]}
    run = ports.stored(await ports.start(replace(HELLO, client_tools=(tool,), client_request=request)))
    shown = canonical_json([run.client_request, run.client_tools[0].description, run.client_tools[0].parameters])
    assert CANARY not in shown
    assert shown.count("[canary:vault]") == 4
    assert run.client_tools[0].name == "weather"


async def test_a_tool_of_the_client_with_a_canary_token_as_its_name_starts_nothing(ports: Ports) -> None:
    ports.use(a_guarded_agent())
    with refused("client_tools_invalid"):
        await ports.start(replace(HELLO, client_tools=(ClientTool(name=CANARY),)))
    ports.assert_nothing_starts()


@pytest.mark.requirement("X1", "X2")
async def test_tools_and_request_of_the_client_have_256_kib_together(ports: Ports) -> None:
    half = "ü" * (MAX_CLIENT_BYTES // 4 - 100)
    fits = replace(HELLO, client_tools=(ClientTool(name="a", description=half),), client_request={"instructions": half})
    await ports.start(fits)
    with refused("client_request_too_large"):
        await ports.start(replace(fits, client_request={"instructions": half + "ü" * 200}))


async def test_tools_of_the_client_that_no_model_takes_start_nothing(ports: Ports) -> None:
    with refused("client_tools_invalid"):
        await ports.start(replace(HELLO, client_tools=(ClientTool(name="get weather"),)))
    ports.assert_nothing_starts()
