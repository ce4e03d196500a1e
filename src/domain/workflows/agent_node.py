"""Reads the configuration of an agent node."""

from enum import StrEnum
from typing import TypeVar

from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.runs.model_settings import NO_SETTINGS, CacheTtl, Effort, ModelSettings, Verbosity
from domain.runs.output import size_violations
from domain.workflows.config_reader import ConfigReader
from domain.workflows.graph import AgentNodeConfig, NodeMode

_DAY_S = 86_400.0
_MOST_TOKENS = 10**7
_MOST_SEED = 2**63 - 1
_Choice = TypeVar("_Choice", bound=StrEnum)


def read_agent_node(mode: NodeMode, reader: ConfigReader) -> AgentNodeConfig:
    agent = reader.text("agent")
    tools_timeout_s = reader.number("tools_timeout_s", default=60.0, least=0.001, most=_DAY_S) or 0.0
    if mode is NodeMode.TOOL:
        description = reader.text("description", default="") or None
        return AgentNodeConfig(agent=agent, description=description, tools_timeout_s=tools_timeout_s)
    return AgentNodeConfig(
        agent=agent,
        input=reader.template("input"),
        tools_timeout_s=tools_timeout_s,
        model_settings=_model_settings(reader),
        output_schema=_output_schema(reader),
    )


def _output_schema(reader: ConfigReader) -> JsonObject | None:
    if not reader.has("output_schema"):
        return None
    schema = reader.mapping("output_schema")
    too_large = size_violations(schema)
    for violation in too_large:
        reader.wrong(violation.path, violation.message)
    if not too_large:
        reader.schemas.append((f"{reader.prefix}output_schema", schema))
    return schema


def _model_settings(reader: ConfigReader) -> ModelSettings:
    given = reader.section("model_settings")
    if given is None:
        return NO_SETTINGS
    try:
        settings = ModelSettings(
            effort=_choice(given, "effort", Effort),
            verbosity=_choice(given, "verbosity", Verbosity),
            temperature=given.number("temperature", default=None, least=0, most=2),
            top_p=given.number("top_p", default=None, least=0, most=1),
            max_output_tokens=_whole(given, "max_output_tokens", least=1, most=_MOST_TOKENS),
            parallel_tool_calls=_flag(given, "parallel_tool_calls"),
            thinking_budget=_whole(given, "thinking_budget", least=1, most=_MOST_TOKENS),
            service_tier=given.text("service_tier", default="") or None,
            stop=given.names("stop"),
            seed=_whole(given, "seed", least=-_MOST_SEED, most=_MOST_SEED),
            cache_ttl=_choice(given, "cache_ttl", CacheTtl),
            extra_body=given.mapping("extra_body") or None,
        )
    except ServiceError as error:
        for violation in error.violations:
            reader.wrong(violation.path, violation.message)
        settings = NO_SETTINGS
    given.finish()
    return settings


def _flag(reader: ConfigReader, name: str) -> bool | None:
    return reader.flag(name, default=False) if reader.has(name) else None


def _choice(reader: ConfigReader, name: str, options: type[_Choice]) -> _Choice | None:
    if not reader.has(name):
        return None
    chosen = reader.choice(name, tuple(options), "")
    return options(chosen) if chosen else None


def _whole(reader: ConfigReader, name: str, *, least: int, most: int) -> int | None:
    return reader.integer(name, default=least, least=least, most=most) if reader.has(name) else None
