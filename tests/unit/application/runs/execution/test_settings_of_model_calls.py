"""AskModel: the settings that a model is sent are those of the agent, replaced one by one by those
of the run."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.models.ports import ModelRequest, PriceTable
from application.runs.execution.ask_model import CLOSING_OUTPUT_TOKENS, AskModel
from application.runs.execution.prepare_prompt import Prompt
from application.tracing.ports import Tracer
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, Effort, ModelSettings
from tests.builders import a_message, an_agent
from tests.doubles.scripted_model import ModelTurn, ScriptedModel
from tests.doubles.surroundings import FixedClock
from tests.run_builders import a_session, a_toolset

PROMPT = Prompt(toolset=a_toolset(), system="Answer briefly.", fixed_bytes=400)


async def requested(
    mocker: MockerFixture,
    *,
    of_agent: ModelSettings,
    of_run: ModelSettings = NO_SETTINGS,
    limits: LimitSettings | None = None,
    closing: bool = False,
) -> ModelRequest:
    """What the model is asked by a run with these settings."""
    agent = an_agent(limits=limits)
    agent = replace(agent, config=replace(agent.config, model_settings=of_agent))
    tracer = mocker.create_autospec(Tracer, instance=True)
    session = a_session(agent=agent, tracer=tracer)
    session.run = replace(session.run, model_settings=of_run)
    prices = mocker.create_autospec(PriceTable, instance=True)
    prices.cost_usd.return_value = Decimal(1)
    model = ScriptedModel([ModelTurn(text="Hi.")])
    asking = AskModel(models=model, prices=prices, tracer=tracer, clock=FixedClock())
    await asking.execute(session, PROMPT, (a_message(),), closing=closing)
    (request,) = model.requests
    return request


@pytest.mark.requirement("H3")
async def test_settings_of_the_run_replace_those_of_the_agent_one_by_one(mocker: MockerFixture) -> None:
    settings = ModelSettings(effort=Effort.LOW, max_output_tokens=500, seed=7)
    request = await requested(mocker, of_agent=settings, of_run=ModelSettings(effort=Effort.HIGH))
    assert request.settings == replace(settings, effort=Effort.HIGH)
    assert request.max_output_tokens == 500


@pytest.mark.requirement("H3")
async def test_sampling_of_the_run_is_sent_instead_of_the_thinking_budget_of_the_agent(mocker: MockerFixture) -> None:
    of_agent, of_run = ModelSettings(thinking_budget=2_048), ModelSettings(temperature=0.5)
    assert (await requested(mocker, of_agent=of_agent, of_run=of_run)).settings == of_run
    assert (await requested(mocker, of_agent=of_run, of_run=of_agent)).settings == of_agent


@pytest.mark.requirement("H3")
async def test_a_lower_bound_of_a_limit_stays(mocker: MockerFixture) -> None:
    settings, limits = ModelSettings(max_output_tokens=50_000), LimitSettings(max_tokens=9)
    request = await requested(mocker, of_agent=settings, limits=limits, closing=True)
    assert request.max_output_tokens == CLOSING_OUTPUT_TOKENS


async def test_without_settings_the_model_gets_none(mocker: MockerFixture) -> None:
    assert (await requested(mocker, of_agent=NO_SETTINGS)).settings is None
