"""What an agent's configuration must be."""

import pytest

from domain.agents.agent import AgentConfig
from domain.errors import ErrorKind, ServiceError
from domain.tools.capabilities import NATIVE_TYPES, ToolType

SEND_EMAIL, MCP_TOOL = ToolType.SEND_EMAIL, ToolType.MCP_TOOL


def config(
    name: str = "researcher",
    model: str = "openai:gpt-5-mini",
    fallback_models: tuple[str, ...] = (),
    tools: tuple[ToolType, ...] = (),
    mcp_servers: tuple[str, ...] = (),
) -> AgentConfig:
    return AgentConfig(name=name, model=model, fallback_models=fallback_models, tools=tools, mcp_servers=mcp_servers)


def paths(refused: pytest.ExceptionInfo[ServiceError]) -> list[str]:
    assert (refused.value.code, refused.value.kind) == ("agent_invalid", ErrorKind.INVALID)
    return [violation.path for violation in refused.value.violations]


@pytest.mark.requirement("C1")
def test_models_are_tried_in_the_order_in_which_they_are_named() -> None:
    agent = config(model="openai:a", fallback_models=("anthropic:b", "scripted:c.yaml"))
    assert agent.models == ("openai:a", "anthropic:b", "scripted:c.yaml")


@pytest.mark.parametrize("model", ["openai:gpt", "scripted:a/b.yaml", "openai:vendor/model:free"])
def test_a_model_is_named_after_its_provider(model: str) -> None:
    assert config(model=model).model == model


@pytest.mark.parametrize("model", ["", "gpt-5", "openai:", ":gpt-5"])
def test_a_model_without_provider_or_name_is_refused(model: str) -> None:
    with pytest.raises(ServiceError) as refused:
        config(model=model)
    assert paths(refused) == ["model"]


@pytest.mark.parametrize("name", ["", "   ", "\n"])
def test_an_agent_needs_a_name(name: str) -> None:
    with pytest.raises(ServiceError) as refused:
        config(name=name)
    assert paths(refused) == ["name"]


def test_mcp_tools_are_not_listed_among_the_native_ones() -> None:
    with pytest.raises(ServiceError) as refused:
        config(tools=(SEND_EMAIL, MCP_TOOL))
    assert paths(refused) == ["tools.1"]


def test_every_native_tool_may_be_listed() -> None:
    native = NATIVE_TYPES
    assert config(tools=native).tools == native


def test_an_entry_named_twice_is_refused() -> None:
    with pytest.raises(ServiceError) as refused:
        config(tools=(SEND_EMAIL, SEND_EMAIL), mcp_servers=("files", "clock", "files"))
    assert paths(refused) == ["tools", "mcp_servers"]


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ServiceError) as refused:
        config(name="", model="x", fallback_models=("openai:ok", "y"), tools=(MCP_TOOL,))
    assert paths(refused) == ["name", "model", "fallback_models.1", "tools.0"]
