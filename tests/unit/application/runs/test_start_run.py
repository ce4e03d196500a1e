"""StartRun: what starts, on which model, thread and key, and what is refused without a trace."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore, ModelDirectory
from application.identity.ports import OrganizationStore
from application.mcp.ports import McpConnections
from application.models.ports import PriceTable
from application.runs.new_run import NewRun, StartedRun
from application.runs.ports import RunQueue, RunStore
from application.runs.start_run import StartRun, StartRunCommand
from application.runs.trace_ended_run import TraceEndedRun
from application.webhooks.webhook_check import WebhookCheck
from domain.agents.agent import Agent
from domain.errors import conflict
from domain.identity.role import Role
from domain.ids import ScheduleId, WorkflowRunId
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import Effort, ModelSettings
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.runs.webhook import Webhook
from domain.schedules.firing import Firing
from domain.threads.message import TextContent
from domain.tools.wired import WiredNodes
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import (
    AGENT,
    ORG,
    RUN,
    START,
    THREAD,
    a_displayable_call,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    a_tool_use,
    an_agent,
    an_organization,
)
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.run_builders import CANARY, a_claimed_run, a_guarded_agent, a_state_with_run, a_waiting_run
from tests.unit.application.actors import a_principal

OTHER_MODEL = "scripted:other.yaml"
RUNNER = a_principal(Role.RUNNER)
HELLO = StartRunCommand(principal=RUNNER, agent=AGENT, input=(TextContent(text="hello"),), thread_id=THREAD)
KEYED = replace(HELLO, idempotency_key="order-1", body_digest="digest")
WEBHOOK = Webhook(url="https://hooks.example.org/T0K3N")


class Ports:
    """An empty thread in memory, and mocks of the rest; all models are there, with prices."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.use_state(InMemoryState())
        self.state.threads[THREAD] = StoredThread(thread=a_thread())
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.use(an_agent())
        self.organizations: MockType = mocker.create_autospec(OrganizationStore, instance=True)
        self.organizations.get.return_value = an_organization()
        self.models: MockType = mocker.create_autospec(ModelDirectory, instance=True)
        self.models.problem_with.return_value = None
        self.models.not_taken.return_value = ()
        self.prices: MockType = mocker.create_autospec(PriceTable, instance=True)
        self.prices.cost_usd.return_value = Decimal("0.01")
        self.queue: MockType = mocker.create_autospec(RunQueue, instance=True)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.trace_ended: MockType = mocker.create_autospec(TraceEndedRun, instance=True)
        self.webhooks: MockType = mocker.create_autospec(WebhookCheck, instance=True)
        self.clock = FixedClock()

    def use(self, agent: Agent | None) -> None:
        self.agents.get.return_value = self.agents.find.return_value = agent

    def use_state(self, state: InMemoryState) -> None:
        self.state = state
        self.runs: RunStore = InMemoryRunStore(state, InProcessWakeups())

    async def start(self, command: StartRunCommand = HELLO) -> StartedRun:
        starting = StartRun(
            runs=self.runs,
            agents=self.agents,
            sources=InMemorySourceStore(self.state),
            organizations=self.organizations,
            models=self.models,
            prices=self.prices,
            schemas=JsonSchemaValidator(),
            queue=self.queue,
            connections=self.connections,
            trace_ended=self.trace_ended,
            webhooks=self.webhooks,
            clock=self.clock,
            ids=SequentialIds(),
        )
        return await starting.execute(command)

    def stored(self, started: StartedRun) -> Run:
        return self.state.runs[started.run.id].run

    def assert_nothing_starts(self) -> None:
        assert self.state.runs == {}
        self.queue.submit.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what is stored ---


@pytest.mark.requirement("H3")
async def test_settings_of_the_run_are_stored_unless_its_model_refuses_them(ports: Ports) -> None:
    settings = ModelSettings(effort=Effort.HIGH)
    assert ports.stored(await ports.start(replace(HELLO, model_settings=settings))).model_settings == settings


@pytest.mark.requirement("H3")
async def test_settings_that_the_model_refuses_start_nothing(ports: Ports) -> None:
    ports.models.not_taken.return_value = ("temperature",)
    with refused("model_settings_invalid"):
        await ports.start(replace(HELLO, model_settings=ModelSettings(temperature=0.5)))
    ports.assert_nothing_starts()


@pytest.mark.requirement("H3", "C6")
@pytest.mark.parametrize("settings", [ModelSettings(service_tier="priority"), ModelSettings(extra_body={"top_k": 3})])
async def test_settings_that_may_raise_the_price_need_an_operator(ports: Ports, settings: ModelSettings) -> None:
    command = replace(HELLO, model_settings=settings)
    with refused("model_settings_not_allowed"):
        await ports.start(command)
    ports.assert_nothing_starts()
    started = await ports.start(replace(command, principal=a_principal(Role.OPERATOR)))
    assert ports.stored(started).model_settings == settings


@pytest.mark.requirement("A1", "E1")
async def test_a_run_is_stored_as_queued_and_submitted(ports: Ports) -> None:
    wired = WiredNodes(workflow_run_id=WorkflowRunId("wfr_1"), node_ids=("search",))

    run = ports.stored(await ports.start(replace(HELLO, run_id=a_run_id(42), metadata={"ticket": 7}, wired=wired)))

    assert (run.id, run.status, run.input, run.thread_id) == (a_run_id(42), RunStatus.QUEUED, HELLO.input, THREAD)
    assert (run.agent_id, run.agent_version, run.model) == (AGENT, 1, an_agent().config.model)
    assert (run.requested_by, run.created_at, run.metadata) == (RUNNER.key_id, START, {"ticket": 7})
    assert run.wired == wired
    ports.queue.submit.assert_awaited_once_with(run.id)


@pytest.mark.requirement("E1")
async def test_a_run_that_the_store_has_submitted_is_not_submitted_again(ports: Ports, mocker: MockerFixture) -> None:
    ports.runs = runs = mocker.create_autospec(RunStore, instance=True)
    runs.start.return_value = StartedRun(run=a_run(), created=True, submitted=True)

    await ports.start()

    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("A1")
async def test_without_a_thread_a_new_one_is_created(ports: Ports) -> None:
    ports.use_state(InMemoryState())

    run = ports.stored(await ports.start(replace(HELLO, thread_id=None)))

    thread = ports.state.threads[run.thread_id].thread
    assert (thread.organization_id, thread.created_at) == (ORG, START)


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_input_is_replaced_by_its_mark(ports: Ports) -> None:
    ports.use(a_guarded_agent())

    run = ports.stored(await ports.start(replace(HELLO, input=(TextContent(text=f"Say {CANARY}!"),))))

    assert run.input == (TextContent(text="Say [canary:vault]!"),)


async def test_the_url_of_a_webhook_is_stored_beside_the_run_and_not_in_it(ports: Ports) -> None:
    started = await ports.start(replace(HELLO, webhook=WEBHOOK))

    assert ports.stored(started).webhook == WEBHOOK.note
    assert ports.state.runs[started.run.id].webhook_url == WEBHOOK.url
    ports.webhooks.require_usable.assert_awaited_once_with(ORG, WEBHOOK)


async def test_the_run_of_a_schedule_carries_its_trigger(ports: Ports, mocker: MockerFixture) -> None:
    ports.runs = runs = mocker.create_autospec(RunStore, instance=True)
    runs.start.side_effect = conflict("schedule_moved", "The schedule has moved on.")
    firing = Firing(schedule_id=ScheduleId("sch_1"), version=1, due_at=START, next_fire_at=None)

    with refused("schedule_moved"):
        await ports.start(replace(HELLO, firing=firing))

    [new] = runs.start.await_args.args
    assert isinstance(new, NewRun)
    assert new.firing == firing
    ports.assert_nothing_starts()


# --- who, and what is refused ---


@pytest.mark.requirement("C6")
async def test_a_viewer_starts_nothing(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.start(replace(HELLO, principal=a_principal(Role.VIEWER)))

    ports.agents.get.assert_not_awaited()
    ports.assert_nothing_starts()


@pytest.mark.parametrize("text", [None, " \n"], ids=["nothing", "white space"])
async def test_a_run_without_input_is_refused(ports: Ports, text: str | None) -> None:
    with refused("input_empty"):
        await ports.start(replace(HELLO, input=() if text is None else (TextContent(text=text),)))

    ports.assert_nothing_starts()


@pytest.mark.requirement("C1", "C6")
@pytest.mark.parametrize(
    ("agent", "code"),
    [(None, "agent_not_found"), (an_agent(enabled=False), "agent_disabled")],
    ids=["none", "disabled"],
)
async def test_without_an_enabled_agent_of_the_organization_nothing_starts(
    ports: Ports, agent: Agent | None, code: str
) -> None:
    ports.use(agent)

    with refused(code):
        await ports.start()

    ports.agents.get.assert_awaited_once_with(ORG, AGENT)
    ports.assert_nothing_starts()


async def test_a_thread_that_the_organization_does_not_have_is_not_found(ports: Ports) -> None:
    with refused("thread_not_found"):
        await ports.start(replace(HELLO, thread_id=a_thread_id(9)))

    ports.assert_nothing_starts()


# --- the model ---


@pytest.mark.parametrize("layer", ["fallback", "organization"])
async def test_a_run_may_use_a_fallback_of_its_agent_or_a_model_of_the_organization(ports: Ports, layer: str) -> None:
    if layer == "fallback":
        ports.use(an_agent(fallback_models=(OTHER_MODEL,)))
    else:
        ports.organizations.get.return_value = replace(an_organization(), models=(OTHER_MODEL,))

    assert ports.stored(await ports.start(replace(HELLO, model=OTHER_MODEL))).model == OTHER_MODEL


async def test_a_model_that_neither_agent_nor_organization_lists_is_refused(ports: Ports) -> None:
    with refused("model_not_allowed"):
        await ports.start(replace(HELLO, model=OTHER_MODEL))

    ports.models.problem_with.assert_not_awaited()
    ports.assert_nothing_starts()


async def test_a_model_that_cannot_be_reached_is_refused(ports: Ports) -> None:
    ports.models.problem_with.return_value = "There is no key for the provider."

    with refused("model_unavailable"):
        await ports.start()

    ports.assert_nothing_starts()


@pytest.mark.requirement("A7", "A10")
@pytest.mark.parametrize("layer", ["run", "agent", "organization"])
async def test_a_cost_limit_is_refused_for_a_model_without_a_price(ports: Ports, layer: str) -> None:
    limit = LimitSettings(max_cost_usd=Decimal(1))
    ports.prices.cost_usd.return_value = None
    ports.use(an_agent(limits=limit if layer == "agent" else None))
    if layer == "organization":
        ports.organizations.get.return_value = replace(an_organization(), limits=limit)

    with refused("limits_invalid"):
        await ports.start(replace(HELLO, limits=limit if layer == "run" else LimitSettings()))

    ports.assert_nothing_starts()


# --- idempotency keys ---


@pytest.mark.requirement("E1")
async def test_the_same_key_and_body_give_the_same_run(ports: Ports) -> None:
    first = await ports.start(KEYED)

    again = await ports.start(KEYED)

    assert (again.run.id, again.created) == (first.run.id, False)
    assert list(ports.state.runs) == [first.run.id]
    ports.queue.submit.assert_awaited_once()


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("agent", [None, an_agent(enabled=False)], ids=["deleted", "disabled"])
async def test_the_same_key_gives_the_run_whatever_happened_to_its_agent(ports: Ports, agent: Agent | None) -> None:
    first = await ports.start(KEYED)
    ports.use(agent)

    assert (await ports.start(KEYED)).run.id == first.run.id


@pytest.mark.requirement("E1")
async def test_the_same_key_with_another_body_is_refused(ports: Ports) -> None:
    await ports.start(KEYED)

    with refused("idempotency_key_reused"):
        await ports.start(replace(KEYED, body_digest="another"))

    assert len(ports.state.runs) == 1


# --- unfinished runs of the thread ---


@pytest.mark.requirement("E5")
async def test_a_run_is_rejected_on_a_busy_thread_if_it_asks_for_that(ports: Ports) -> None:
    ports.use_state(a_state_with_run(a_claimed_run()))

    with refused("thread_busy"):
        await ports.start(replace(HELLO, strategy=MultitaskStrategy.REJECT))

    assert list(ports.state.runs) == [RUN]
    ports.queue.submit.assert_not_awaited()


@pytest.mark.requirement("E5")
async def test_a_run_waits_behind_the_unfinished_one_by_default(ports: Ports) -> None:
    ports.use_state(a_state_with_run(a_claimed_run()))

    started = await ports.start(replace(HELLO, run_id=a_run_id(2)))

    assert (started.interrupted, ports.state.runs[RUN].run.status) == ((), RunStatus.IN_PROGRESS)


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("strategy", list(MultitaskStrategy))
async def test_a_run_that_waits_for_displayed_tools_only_is_completed_by_the_next_message(
    ports: Ports, strategy: MultitaskStrategy
) -> None:
    call = a_displayable_call()
    ports.use_state(a_state_with_run(a_waiting_run(a_tool_use(call)), call))

    await ports.start(replace(HELLO, run_id=a_run_id(2), strategy=strategy))

    completed = ports.state.runs[RUN].run
    assert completed.status is RunStatus.COMPLETED
    ports.trace_ended.execute.assert_awaited_once_with(completed)
    ports.queue.submit.assert_awaited_once_with(a_run_id(2))


# --- ports that fail ---


@pytest.mark.parametrize(
    "failing", ["agents.get", "organizations.get", "models.problem_with", "webhooks.require_usable"]
)
async def test_a_port_that_fails_before_the_run_is_stored_starts_nothing(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.start(replace(HELLO, webhook=WEBHOOK))

    ports.assert_nothing_starts()


@pytest.mark.parametrize("method", ["started_before", "start"])
async def test_a_run_that_cannot_be_stored_is_not_submitted(ports: Ports, mocker: MockerFixture, method: str) -> None:
    ports.runs = runs = mocker.create_autospec(RunStore, instance=True)
    runs.started_before.return_value = None
    getattr(runs, method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.start(KEYED)

    ports.queue.submit.assert_not_awaited()
    ports.trace_ended.execute.assert_not_awaited()
