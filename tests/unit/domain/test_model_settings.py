"""Model settings hold only what a model may be sent."""

import pytest

from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.runs.model_settings import NO_SETTINGS, NOT_EXTRA, CacheTtl, Effort, ModelSettings


def faults_of(**settings: object) -> set[str]:
    with pytest.raises(ServiceError) as caught:
        ModelSettings(**settings)  # type: ignore[arg-type]
    assert caught.value.code == "model_settings_invalid"
    return {violation.path.removeprefix("model_settings.") for violation in caught.value.violations}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("top_p", 1.1),
        ("max_output_tokens", 0),
        ("thinking_budget", 0),
        ("service_tier", "no tier"),
        ("stop", ()),
        ("stop", ("END", "")),
        ("stop", ("x",) * 17),
        ("extra_body", {"a": "x" * 20_000}),
    ],
)
def test_values_out_of_bounds_are_refused(name: str, value: object) -> None:
    assert faults_of(**{name: value}) == {name}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("name", sorted(NOT_EXTRA))
def test_the_extra_body_changes_neither_the_conversation_nor_the_tools(name: str) -> None:
    assert faults_of(extra_body={"top_k": 3, name: []}) == {"extra_body"}


def test_a_budget_of_thinking_excludes_sampling() -> None:
    assert faults_of(thinking_budget=4_096, temperature=0.5, top_p=0.9) == {"temperature", "top_p"}


@pytest.mark.requirement("H3")
def test_settings_of_a_run_replace_those_of_its_agent_one_by_one() -> None:
    extra: JsonObject = {"top_k": 3}
    agent = ModelSettings(effort=Effort.LOW, parallel_tool_calls=True, extra_body=extra)
    run = ModelSettings(effort=Effort.HIGH, parallel_tool_calls=False)
    assert agent.changed_by(run) == ModelSettings(effort=Effort.HIGH, parallel_tool_calls=False, extra_body=extra)
    assert agent.changed_by(NO_SETTINGS) == agent


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("sampling", [{"temperature": 0.5}, {"top_p": 0.5}, {"temperature": 0, "top_p": 0.5}])
def test_sampling_of_a_run_removes_the_thinking_budget_of_its_agent_and_the_reverse(sampling: dict[str, float]) -> None:
    sampled = ModelSettings(seed=7, **sampling)  # type: ignore[arg-type]
    budget = ModelSettings(thinking_budget=2_048, seed=7)
    assert budget.changed_by(sampled) == sampled
    assert sampled.changed_by(budget) == budget
    assert budget.changed_by(ModelSettings(seed=8)) == ModelSettings(thinking_budget=2_048, seed=8)


def test_what_is_set_is_stated_even_if_it_is_zero() -> None:
    settings = ModelSettings(temperature=0, seed=0, parallel_tool_calls=False, cache_ttl=CacheTtl.FIVE_MINUTES)
    assert settings.stated == ("temperature", "parallel_tool_calls", "seed", "cache_ttl")
    assert settings.only(frozenset({"seed", "effort"})) == ModelSettings(seed=0)
