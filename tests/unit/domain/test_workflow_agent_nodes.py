"""Configuration of agent nodes: model settings and the output schema of their runs."""

import pytest

from domain.json_value import JsonObject
from domain.runs.model_settings import NO_SETTINGS, CacheTtl, Effort, ModelSettings, Verbosity
from domain.workflows.compiler import Compilation
from domain.workflows.graph import AgentNodeConfig
from tests.workflow_builders import agent, compiled, entrypoint

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}


def of_agent(**config: object) -> Compilation:
    return compiled(entrypoint(), agent("poet", **config), "start -> poet")


def config_of(**config: object) -> AgentNodeConfig:
    plan = of_agent(**config).plan
    assert plan is not None
    found = plan.by_id["poet"].config
    assert isinstance(found, AgentNodeConfig)
    return found


@pytest.mark.requirement("H3", "F1")
def test_settings_and_schema_are_those_of_the_run() -> None:
    config = config_of(
        output_schema=SCHEMA,
        model_settings={
            "effort": "high",
            "verbosity": "low",
            "temperature": 0.5,
            "top_p": 1,
            "max_output_tokens": 900,
            "parallel_tool_calls": False,
            "service_tier": "flex",
            "stop": ["END"],
            "seed": -3,
            "cache_ttl": "1h",
            "extra_body": {"top_k": 3},
        },
    )
    assert config.output_schema == SCHEMA
    assert config.model_settings == ModelSettings(
        effort=Effort.HIGH,
        verbosity=Verbosity.LOW,
        temperature=0.5,
        top_p=1.0,
        max_output_tokens=900,
        parallel_tool_calls=False,
        service_tier="flex",
        stop=("END",),
        seed=-3,
        cache_ttl=CacheTtl.ONE_HOUR,
        extra_body={"top_k": 3},
    )


@pytest.mark.requirement("H3", "F1")
@pytest.mark.parametrize("given", [{}, {"effort": None, "stop": None, "seed": None}])
def test_what_is_absent_or_null_is_not_set(given: JsonObject) -> None:
    config = config_of(model_settings=given)
    assert config.model_settings == NO_SETTINGS
    assert config.output_schema is None
    assert config_of().model_settings is NO_SETTINGS


@pytest.mark.requirement("H3", "F1")
@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"model_settings": {"effort": "huge"}}, "config.model_settings.effort"),
        ({"model_settings": {"temperature": 3}}, "config.model_settings.temperature"),
        ({"model_settings": {"max_output_tokens": 0}}, "config.model_settings.max_output_tokens"),
        ({"model_settings": {"thinking_budget": 9, "top_p": 0.5}}, "config.model_settings.top_p"),
        ({"model_settings": {"extra_body": {"tools": []}}}, "config.model_settings.extra_body"),
        ({"model_settings": {"efort": "low"}}, "config.model_settings.efort"),
        ({"model_settings": "low"}, "config.model_settings"),
        ({"output_schema": "object"}, "config.output_schema"),
        ({"output_schema": {"type": "object", "description": "x" * 70_000}}, "config.output_schema"),
    ],
)
def test_faults_are_named_by_their_path(config: dict[str, object], path: str) -> None:
    assert path in [fault.path for fault in of_agent(**config).faults]


@pytest.mark.requirement("H3", "F1")
def test_the_schema_is_checked_with_those_of_other_nodes() -> None:
    found = of_agent(output_schema=SCHEMA)
    assert [(placed.path, placed.schema) for placed in found.schemas] == [("config.output_schema", SCHEMA)]
