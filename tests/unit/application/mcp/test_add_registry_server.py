"""AddRegistryServer: an entry of a registry becomes a registered server."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.add_registry_server import AddRegistryServer, AddRegistryServerCommand
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.registries import GetRegistryEntry
from domain.errors import not_found
from domain.identity.role import Role
from domain.mcp.registry_entry import RegistryEntry, RegistryInput, RegistryOption, Slot, SlotGroup
from domain.mcp.server import McpServerConfig, McpServerKind
from tests.builders import a_server
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("X6")
ADMIN = a_principal(Role.ADMIN)
TOKEN = RegistryInput(name="env.TOKEN", is_required=True, is_secret=True)
ENTRY = RegistryEntry(
    name="com.example/Ticket.Server",
    version="1.2.0",
    title="Tickets",
    description="",
    status="active",
    options=(
        RegistryOption(
            kind=McpServerKind.NPM,
            package="@example/tickets",
            version="1.2.0",
            slots=(Slot(group=SlotGroup.ENV, name="TOKEN", template="{env.TOKEN}", inputs=(TOKEN,)),),
        ),
    ),
)


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.entries = mocker.create_autospec(GetRegistryEntry, instance=True)
        self.entries.execute.return_value = ENTRY
        self.register = mocker.create_autospec(RegisterMcpServer, instance=True)
        self.register.execute.return_value = a_server()
        self.adding = AddRegistryServer(entries=self.entries, register=self.register)

    async def added(self, **settings: object) -> McpServerConfig:
        command = AddRegistryServerCommand(
            principal=ADMIN,
            registry="ours",
            name=ENTRY.name,
            **settings,  # type: ignore[arg-type]
        )
        await self.adding.execute(command)
        config: McpServerConfig = self.register.execute.await_args.args[0].config
        return config


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_the_server_has_the_entrys_package_the_inputs_and_a_slug_after_its_name(ports: Ports) -> None:
    config = await ports.added(inputs={"env.TOKEN": "t-1"})
    assert (config.slug, config.package, config.version) == ("ticket-server", "@example/tickets", "1.2.0")
    assert config.env == {"TOKEN": "t-1"}
    assert config.registry_entry == "ours:com.example/Ticket.Server@1.2.0"
    assert (await ports.added(inputs={"env.TOKEN": "t-1"}, slug="mine", version="1.1.0")).slug == "mine"
    assert ports.entries.execute.await_args.args == (ADMIN, "ours", ENTRY.name, "1.1.0")


async def test_without_its_required_inputs_nothing_is_registered(ports: Ports) -> None:
    with refused("registry_inputs_invalid"):
        await ports.added()
    with refused("registry_option_invalid"):
        await ports.added(option=1, inputs={"env.TOKEN": "t-1"})
    ports.register.execute.assert_not_awaited()


async def test_an_entry_that_the_registry_lacks_is_not_registered(ports: Ports) -> None:
    ports.entries.execute.side_effect = not_found("mcp_registry_entry", ENTRY.name)
    with refused("mcp_registry_entry_not_found"):
        await ports.added(inputs={"env.TOKEN": "t-1"})
    ports.register.execute.assert_not_awaited()
