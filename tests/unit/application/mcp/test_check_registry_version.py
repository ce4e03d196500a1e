"""CheckRegistryVersion: what is newer, and what a server from no registry is told."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.check_registry_version import CheckRegistryVersion, RegistryVersion
from application.mcp.ports import McpServerStore
from application.mcp.registries import GetRegistryEntry
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.mcp.entry_origin import EntryOrigin
from domain.mcp.registry_entry import RegistryEntry
from tests.builders import a_server
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("X6")
ORIGIN = EntryOrigin(registry="ours", name="com.example/tickets", version="1.2.0")
SERVER = a_server()


class Ports:
    def __init__(self, mocker: MockerFixture) -> None:
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.entries: MockType = mocker.create_autospec(GetRegistryEntry, instance=True)
        self.checking = CheckRegistryVersion(servers=self.servers, entries=self.entries)
        self.has(str(ORIGIN))

    def has(self, registry_entry: str | None) -> None:
        config = replace(SERVER.config, registry_entry=registry_entry)
        self.servers.get.return_value = replace(SERVER, config=config)

    def latest_is(self, version: str) -> None:
        self.entries.execute.return_value = RegistryEntry(
            name=ORIGIN.name, version=version, title="", description="", status="active"
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.parametrize(("latest", "newer"), [("1.2.0", None), ("1.3.0", "1.3.0")])
async def test_another_latest_version_is_newer(ports: Ports, latest: str, newer: str | None) -> None:
    ports.latest_is(latest)
    found = await ports.checking.execute(a_principal(), "files")
    assert found == RegistryVersion(origin=ORIGIN, newer=newer)
    assert ports.entries.execute.await_args.args[1:] == ("ours", "com.example/tickets")


async def test_a_server_from_no_registry_asks_none(ports: Ports) -> None:
    ports.has(None)
    assert await ports.checking.execute(a_principal(), "files") == RegistryVersion(origin=None)
    ports.entries.execute.assert_not_awaited()


async def test_only_admins_let_a_registry_be_asked(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.checking.execute(a_principal(Role.OPERATOR), "files")
    ports.servers.get.assert_not_awaited()


@pytest.mark.parametrize("text", ["", "ours", "ours:tickets@1", "ours:a/b", "OURS:a/b@1", f"ours:a/b@{'1' * 600}"])
def test_what_names_no_version_of_an_entry_is_no_origin(text: str) -> None:
    assert EntryOrigin.read(text) is None
    with pytest.raises(ServiceError):
        replace(SERVER.config, registry_entry=text)
