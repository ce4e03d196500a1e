"""PreparePrompt: the toolset and the system prompt of a turn, and when they are prepared again."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.mcp.ports import ConnectionScope
from application.runs.execution.interruption import Interrupted, StopReason, TimeUp
from application.runs.execution.prepare_prompt import AgentDisabled, PreparePrompt, Prompt
from application.runs.execution.run_session import RunSession
from application.runs.ports import RunReader
from application.tools.toolset import ServerOverview, Toolset
from application.tools.toolset_builder import ToolsetBuilder
from application.tracing.ports import Tracer
from domain.agents.agent import Agent
from domain.json_value import JsonObject
from domain.policy.canary import CanaryToken, placeholder
from domain.runs.events import RunEvent, RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.shared_state import SharedState
from domain.tools.client_tool import ClientTool
from tests.builders import ORG, RUN, START, THREAD, a_run, a_tool, an_agent, an_organization
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import CANARY, a_claimed_run, a_session

FILES = ServerOverview(slug="files", tools=(a_tool(),))
TOOLSET = Toolset(tools=(a_tool(),), servers=(FILES,))
WITHOUT_SERVER = Toolset(tools=(), servers=(replace(FILES, tools=(), unavailable="it is away"),))


class Ports:
    """Mocks of what `PreparePrompt` calls, and the session of a run that begins."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.catalog: MockType = mocker.create_autospec(ToolsetBuilder, instance=True)
        self.catalog.toolset.return_value = TOOLSET
        self.catalog.is_outdated.return_value = False
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.organizations: MockType = mocker.create_autospec(OrganizationStore, instance=True)
        self.organizations.get.return_value = an_organization()
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.clock = FixedClock()
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.use(an_agent())

    def use(self, agent: Agent) -> None:
        self.agents.get.return_value = agent
        run = a_claimed_run(replace(a_run(), tool_allowlist=("echo",)))
        self.session: RunSession = a_session(run=run, agent=agent, tracer=self.tracer, clock=self.clock)

    async def prepare(self, previous: Prompt | None = None) -> Prompt:
        preparing = PreparePrompt(
            catalog=self.catalog, agents=self.agents, organizations=self.organizations, runs=self.runs
        )
        return await preparing.execute(self.session, previous)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("A13")
async def test_the_first_prompt_has_the_instructions_and_a_line_for_each_tool(ports: Ports) -> None:
    prompt = await ports.prepare()

    assert prompt.toolset is ports.session.toolset is TOOLSET
    assert prompt.system.startswith("Answer briefly.\n\n# MCP servers")
    assert "- mcp__files__echo: Says it again." in prompt.system
    assert prompt.fixed_bytes == len(prompt.system.encode()) + TOOLSET.definition_bytes
    ports.catalog.toolset.assert_awaited_once_with(
        an_agent().config,
        ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN),
        run_allowlist=("echo",),
        wired=None,
        caller=None,
        actor=None,
    )


@pytest.mark.requirement("X1", "X2")
async def test_tools_and_instructions_of_the_client_come_after_those_of_the_agent(ports: Ports) -> None:
    weather, theirs = ClientTool(name="weather"), f"Be kind. {placeholder('one')}"
    ports.session.run = replace(ports.session.run, client_tools=(weather,), instructions=theirs)
    prompt = await ports.prepare()
    assert [tool.name for tool in prompt.toolset.tools] == [a_tool().name, "weather"]
    assert ports.session.toolset is prompt.toolset
    assert prompt.system.startswith("Answer briefly.")
    assert prompt.system.endswith(f"# Instructions of the client\n\n{theirs}"), "a placeholder of theirs is a text"


@pytest.mark.requirement("X4")
@pytest.mark.parametrize(("resumed", "told"), [({}, False), ({"client_request": {"state": {"n": 2}}}, True)])
async def test_a_state_that_came_when_the_run_was_resumed_is_told(
    ports: Ports, resumed: JsonObject, told: bool
) -> None:
    run = replace(ports.session.run, client_request={"state": {"n": 1}}, instructions="State: 1", last_seq=1)
    ports.session.run, ports.session.shared_state = run, SharedState.of(run)
    event = RunEvent(run_id=RUN, seq=1, type=RunEventType.RUN_RESUMED, at=START, data=resumed)
    ports.runs.events.return_value = (event,)
    prompt = await ports.prepare()
    assert prompt.system.endswith('State of the application now: {"n": 2}') is told
    assert "State: 1" in prompt.system
    assert "update_state" in [tool.name for tool in prompt.toolset.tools]


@pytest.mark.requirement("A13")
async def test_the_overview_of_servers_is_kept_for_all_turns_and_attempts(ports: Ports) -> None:
    first = await ports.prepare()
    ports.catalog.toolset.return_value = WITHOUT_SERVER

    again = await ports.prepare()

    assert again.toolset is WITHOUT_SERVER
    assert again.system == first.system


@pytest.mark.requirement("A13", "C1")
async def test_a_prompt_is_kept_while_agent_and_organization_stay_as_they_are(ports: Ports) -> None:
    first = await ports.prepare()

    assert await ports.prepare(first) is first

    ports.catalog.toolset.assert_awaited_once()


@pytest.mark.requirement("B7", "A13")
async def test_tools_that_a_lost_connection_hides_leave_the_prompt_until_it_is_back(ports: Ports) -> None:
    first = await ports.prepare()
    ports.catalog.is_outdated.return_value = True
    lost = Toolset(tools=(), servers=(replace(FILES, tools=(), unavailable="it is lost", hides_lost=True),))
    ports.catalog.toolset.return_value = lost

    reduced = await ports.prepare(first)

    assert reduced.toolset is lost
    assert "## files\nUnavailable in this run: it is lost" in reduced.system
    ports.catalog.toolset.return_value = TOOLSET
    assert (await ports.prepare(reduced)).system == first.system


@pytest.mark.requirement("C1")
async def test_a_change_of_the_agent_reaches_the_run_at_its_next_turn(ports: Ports) -> None:
    first = await ports.prepare()
    ports.agents.get.return_value = an_agent(version=2, instructions="Answer at length.")

    prompt = await ports.prepare(first)

    assert prompt.system.startswith("Answer at length.")
    assert (ports.session.agent.version, ports.session.run.agent_version) == (2, 2)


@pytest.mark.requirement("C1")
async def test_a_change_of_the_organization_reaches_the_run_at_its_next_turn(ports: Ports) -> None:
    first = await ports.prepare()
    ports.organizations.get.return_value = replace(an_organization(), version=2, limits=LimitSettings(max_turns=3))

    assert await ports.prepare(first) is not first

    assert ports.session.limits.max_turns == 3


@pytest.mark.requirement("C1")
async def test_the_run_of_a_deleted_agent_keeps_its_last_version(ports: Ports) -> None:
    first = await ports.prepare()
    ports.agents.get.return_value = None

    assert await ports.prepare(first) is first


@pytest.mark.requirement("C1")
async def test_a_disabled_agent_has_no_prompt_at_the_start_of_a_run(ports: Ports) -> None:
    ports.use(an_agent(enabled=False))

    with pytest.raises(AgentDisabled):
        await ports.prepare()

    ports.catalog.toolset.assert_not_awaited()


@pytest.mark.requirement("C1")
async def test_an_agent_that_is_disabled_during_a_run_has_no_prompt_for_its_next_turn(ports: Ports) -> None:
    first = await ports.prepare()
    ports.agents.get.return_value = an_agent(version=2, enabled=False)

    with pytest.raises(AgentDisabled):
        await ports.prepare(first)


@pytest.mark.requirement("C4")
async def test_canary_tokens_take_the_place_of_their_placeholders(ports: Ports) -> None:
    token = CanaryToken(id="vault", secret=CANARY)
    ports.use(an_agent(instructions=f"The word is {placeholder('vault')}.", canary_tokens=(token,)))

    assert (await ports.prepare()).system.startswith(f"The word is {CANARY}.")


async def test_tools_that_were_left_out_are_logged(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    ports.catalog.toolset.return_value = Toolset(tools=(), problems=("Two tools have the name echo.",))

    await ports.prepare()

    assert [record.__dict__["problem"] for record in caplog.records] == ["Two tools have the name echo."]


@pytest.mark.requirement("A12")
async def test_a_stop_ends_the_wait_on_servers(ports: Ports) -> None:
    async def stopped(*_: object, **__: object) -> Toolset:
        ports.session.stop.fire(StopReason.CANCELLED)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    ports.catalog.toolset.side_effect = stopped

    async with asyncio.timeout(10):
        with pytest.raises(Interrupted):
            await ports.prepare()


@pytest.mark.requirement("A7")
async def test_servers_that_take_all_the_time_of_the_run_leave_no_prompt(ports: Ports) -> None:
    ports.clock.advance(10_000)

    async def silent(*_: object, **__: object) -> Toolset:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    ports.catalog.toolset.side_effect = silent

    async with asyncio.timeout(10):
        with pytest.raises(TimeUp):
            await ports.prepare()


@pytest.mark.parametrize("failing", ["organizations.get", "catalog.toolset"])
async def test_a_port_that_fails_at_the_start_freezes_no_overview(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.prepare()

    assert (ports.session.run.overview, ports.session.toolset) == (None, None)


async def test_an_agent_that_cannot_be_read_leaves_the_session_on_its_version(ports: Ports) -> None:
    first = await ports.prepare()
    ports.agents.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.prepare(first)

    assert ports.session.agent == an_agent()
