"""FirstAgent: what is made of the answers of the first-run page, and what is not made twice."""

from dataclasses import dataclass
from unittest.mock import Mock

import pytest
from pytest_mock import MockerFixture

from application.agents.create_agent import CreateAgent
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.queries import GetMcpServerStatus
from application.mcp.register_mcp_server import RegisterMcpServer
from application.model_providers.create_model_provider import CreateModelProvider
from domain.errors import conflict
from domain.identity.role import Role
from interfaces.console.first_agent import FirstAgent, FirstAgentWanted
from interfaces.starter_offers import server_offer
from tests.builders import a_server
from tests.refusals import refused
from tests.unit.application.actors import a_principal


@dataclass
class Steps:
    """The use cases, and the class over them."""

    register: Mock
    install: Mock
    give_key: Mock
    create: Mock
    first_agent: FirstAgent


@pytest.fixture
def steps(mocker: MockerFixture) -> Steps:
    register, install, give_key, create, status = (
        mocker.create_autospec(use_case, instance=True)
        for use_case in (RegisterMcpServer, InstallMcpServer, CreateModelProvider, CreateAgent, GetMcpServerStatus)
    )
    register.execute.return_value = a_server(slug="time")
    first_agent = FirstAgent(
        register_mcp_server=register,
        install_mcp_server=install,
        get_mcp_server_status=status,
        create_model_provider=give_key,
        create_agent=create,
    )
    return Steps(register, install, give_key, create, first_agent)


def wanted(*, model: str = "scripted", server: str = "none", api_key: str = "") -> FirstAgentWanted:
    return FirstAgentWanted(name="guide", model=model, server=server_offer(server), api_key=api_key)


@pytest.mark.requirement("U2")
async def test_a_server_is_registered_and_installed_and_its_agent_uses_it(steps: Steps) -> None:
    await steps.first_agent.create(a_principal(), wanted(server="time"))
    [registered] = steps.register.execute.await_args.args
    assert (registered.config.slug, registered.config.package) == ("time", "mcp-server-time")
    [installed] = steps.install.execute.await_args.args
    assert installed.server == a_server().id
    [created] = steps.create.execute.await_args.args
    assert (created.settings.model, created.settings.mcp_servers) == ("scripted:time.yaml", ("time",))
    steps.give_key.execute.assert_not_awaited()


async def test_a_server_that_is_there_is_used_as_it_is(steps: Steps) -> None:
    steps.register.execute.side_effect = conflict("mcp_server_slug_taken", "There is one.")
    await steps.first_agent.create(a_principal(), wanted(server="time"))
    steps.install.execute.assert_not_awaited()
    steps.create.execute.assert_awaited_once()


async def test_a_server_that_may_not_be_registered_makes_no_agent(steps: Steps) -> None:
    steps.register.execute.side_effect = conflict("mcp_kind_not_permitted", "Not this kind.")
    with refused("mcp_kind_not_permitted"):
        await steps.first_agent.create(a_principal(), wanted(server="time"))
    steps.create.execute.assert_not_awaited()


async def test_a_given_key_makes_the_models_provider_before_the_agent(steps: Steps) -> None:
    await steps.first_agent.create(a_principal(), wanted(model="openai:gpt-5-mini", api_key="sk-1"))
    [provider] = steps.give_key.execute.await_args.args
    assert (provider.name, provider.api_key) == ("openai", "sk-1")
    steps.create.execute.assert_awaited_once()


async def test_a_key_for_a_provider_that_has_one_is_refused_at_its_field(steps: Steps) -> None:
    steps.give_key.execute.side_effect = conflict("model_provider_exists", "There is one.")
    with refused("model_provider_exists"):
        await steps.first_agent.create(a_principal(), wanted(model="openai:gpt-5-mini", api_key="sk-1"))
    steps.create.execute.assert_not_awaited()


async def test_a_script_takes_no_key(steps: Steps) -> None:
    await steps.first_agent.create(a_principal(), wanted(api_key="sk-1"))
    steps.give_key.execute.assert_not_awaited()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RUNNER, Role.OPERATOR])
async def test_others_than_admins_make_nothing(steps: Steps, role: Role) -> None:
    with refused("role_insufficient"):
        await steps.first_agent.create(a_principal(role), wanted(server="time", api_key="sk-1"))
    steps.register.execute.assert_not_awaited()
