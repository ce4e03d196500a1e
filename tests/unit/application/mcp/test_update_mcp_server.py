"""UpdateMcpServer: what a change stores, closes and audits, and which changes are refused."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpConnections, McpServerStore
from application.mcp.update_mcp_server import UpdateMcpServer, UpdateMcpServerCommand
from application.system.changes import Changes
from application.system.ports import OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.declared_tool import DeclaredTool
from domain.mcp.server import Credentials, Isolation, McpServer, McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import ORG, SERVER, START, a_server, after, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import (
    INSTALLATION,
    PACKAGE,
    a_package_server,
    a_state_with_servers,
    a_switch,
    certificates_of,
    permit_kinds,
)
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.unit.application.team_ports import team_checks

CONFIG = McpServerConfig(
    slug="files", kind=McpServerKind.CUSTOM, command="files-server", env={"TOKEN": "s3cret", "MODE": "fast"}
)
STORED = a_server(config=CONFIG, version=3)
REMOTE = McpServerConfig(
    slug="files", kind=McpServerKind.HTTP, url="https://mail.example/mcp", headers={"X-Key": "s3cret"}
)
INSTALLED = a_package_server(replace(PACKAGE, slug="files"), version=3, installation=INSTALLATION)
FASTER: Changes = {"timeout_s": 5.0}
RACE = ServiceError("version_conflict", ErrorKind.PRECONDITION, "The server is at version 4, not 3.")


class Ports:
    """The server `files` at version 3; every address may be reached."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = a_state_with_servers(STORED)
        self.servers: McpServerStore = InMemoryMcpServerStore(self.state)
        self.connections: MockType = mocker.create_autospec(McpConnections, instance=True)
        self.outbound: MockType = mocker.create_autospec(OutboundPolicy, instance=True)
        self.outbound.refusal.return_value = None
        self.clock = FixedClock()

    async def update(self, changes: Changes | None = None, **command: Any) -> McpServer:
        updating = UpdateMcpServer(
            servers=self.servers,
            connections=self.connections,
            switch=a_switch(self.state),
            outbound=self.outbound,
            schemas=JsonSchemaValidator(),
            certificates=certificates_of(self.state),
            team_checks=team_checks(self.state),
            clock=self.clock,
            ids=SequentialIds(),
        )
        given: dict[str, Any] = {"principal": a_principal(), "server": "files", "changes": changes or {}}
        return await updating.execute(UpdateMcpServerCommand(**(given | command)))

    def assert_it_stays(self, server: McpServer = STORED) -> None:
        assert self.state.servers[SERVER] == server
        assert self.state.audit == {}
        self.connections.forget.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what a change does ---


@pytest.mark.parametrize("name", [SERVER, "files"])
async def test_a_change_makes_the_next_version_and_leaves_the_other_settings(ports: Ports, name: str) -> None:
    ports.clock.advance(60)

    changed = await ports.update(FASTER, server=name, expected_version=3)

    assert changed == replace(STORED, version=4, config=replace(CONFIG, timeout_s=5.0), updated_at=after(60))
    assert ports.state.servers == {SERVER: changed}


@pytest.mark.requirement("B3")
async def test_a_change_closes_the_connections_of_the_former_version(ports: Ports) -> None:
    await ports.update(FASTER)
    ports.connections.forget.assert_awaited_once_with(ORG, SERVER)


@pytest.mark.requirement("B12")
async def test_env_is_merged_entry_by_entry(ports: Ports) -> None:
    changed = await ports.update(env={"TOKEN": "n3w", "MODE": None, "REGION": "eu"})
    assert changed.config.env == {"TOKEN": "n3w", "REGION": "eu"}


@pytest.mark.requirement("B12")
async def test_headers_are_merged_entry_by_entry(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_server(config=REMOTE)
    changed = await ports.update(headers={"X-Key": None, "X-Region": "eu"})
    assert changed.config.headers == {"X-Region": "eu"}


@pytest.mark.requirement("B12", "C5")
async def test_a_change_is_audited_with_the_names_of_the_fields_and_without_values(ports: Ports) -> None:
    await ports.update(FASTER, env={"TOKEN": "n3w"})

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.at) == (AuditAction.MCP_SERVER_UPDATED, "key_admin", START)
    assert (entry.resource, entry.server_id) == (SERVER, SERVER)
    assert entry.details == {"slug": "files", "version": 4, "changed": ["env", "timeout_s"]}
    assert not [secret for secret in ("s3cret", "n3w", "fast") if secret in repr(entry)]


async def test_a_change_of_nothing_makes_no_version_and_keeps_connections(ports: Ports) -> None:
    same = await ports.update({"enabled": True}, env={"MODE": "fast", "ABSENT": None})

    assert same == STORED
    ports.assert_it_stays()


@pytest.mark.requirement("B2")
async def test_other_settings_of_an_installed_server_may_change(ports: Ports) -> None:
    ports.state.servers[SERVER] = INSTALLED
    changed = await ports.update({"args": ("--utc",)})
    assert (changed.config.args, changed.installation) == (("--utc",), INSTALLATION)


# --- what is refused ---


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("changes", [{"version": "2.0.0"}, {"package": "other"}])
async def test_what_an_installed_server_is_installed_from_cannot_be_changed(ports: Ports, changes: Changes) -> None:
    ports.state.servers[SERVER] = INSTALLED

    with refused("mcp_server_installed"):
        await ports.update(changes)

    ports.assert_it_stays(INSTALLED)


@pytest.mark.requirement("P3")
async def test_what_processes_of_the_organization_may_have_changed_becomes_no_program_of_people(ports: Ports) -> None:
    ports.state.servers[SERVER] = INSTALLED
    persons: dict[str, Any] = {"changes": {"credentials": Credentials.PERSON}, "env": {"T": SecretRef("person:token")}}
    with refused("mcp_server_installed"):
        await ports.update(**persons)
    ports.assert_it_stays(INSTALLED)
    ports.state.servers[SERVER] = replace(INSTALLED, installation=None)
    of_people = await ports.update(**persons)
    ports.state.servers[SERVER] = replace(of_people, installation=INSTALLATION)
    assert (await ports.update({"timeout_s": 7.0})).config.timeout_s == 7.0


async def test_a_change_of_an_older_version_is_refused(ports: Ports) -> None:
    with refused("version_conflict"):
        await ports.update(FASTER, expected_version=2)

    ports.assert_it_stays()


async def test_a_result_that_is_not_valid_as_a_whole_is_refused(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.update({"kind": McpServerKind.HTTP, "url": "https://mail.example/mcp"})

    assert raised.value.code == "mcp_server_invalid"
    assert {fault.path for fault in raised.value.violations} == {"command", "env"}
    ports.assert_it_stays()


async def test_a_slug_that_another_server_has_is_refused(ports: Ports) -> None:
    other = a_server(McpServerId(numbered("mcp", 2)), slug="clock")
    ports.state.servers[other.id] = other

    with refused("mcp_server_slug_taken"):
        await ports.update({"slug": "clock"})

    ports.assert_it_stays()


@pytest.mark.requirement("B16")
async def test_an_address_that_no_request_may_be_sent_to_is_not_stored(ports: Ports) -> None:
    stored = ports.state.servers[SERVER] = a_server(config=REMOTE)
    ports.outbound.refusal.return_value = "is a private address"

    with pytest.raises(ServiceError) as raised:
        await ports.update({"url": "http://10.0.0.1/mcp"})

    assert [fault.path for fault in raised.value.violations] == ["url"]
    ports.assert_it_stays(stored)


async def test_an_address_that_does_not_change_is_not_checked_again(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_server(config=REMOTE)
    ports.outbound.refusal.return_value = "is a private address"

    await ports.update({"enabled": False})

    ports.outbound.refusal.assert_not_called()


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    ("config", "changes", "path"),
    [
        (CONFIG, {"args": ("--token", "pl4nted")}, "args.1"),
        (REMOTE, {"url": "https://mail.example/mcp?api_key=pl4nted"}, "url"),
    ],
    ids=["arguments", "url"],
)
async def test_new_arguments_and_a_new_url_hold_no_secret_in_clear(
    ports: Ports, config: McpServerConfig, changes: Changes, path: str
) -> None:
    stored = ports.state.servers[SERVER] = a_server(config=config)

    with pytest.raises(ServiceError) as raised:
        await ports.update(changes)

    assert [fault.path for fault in raised.value.violations] == [path]
    assert "pl4nted" not in repr(raised.value.violations) + raised.value.detail
    ports.assert_it_stays(stored)


@pytest.mark.requirement("B12")
async def test_a_server_stored_with_a_secret_in_its_arguments_can_be_changed_otherwise(ports: Ports) -> None:
    ports.state.servers[SERVER] = a_server(config=replace(CONFIG, args=("--token", "pl4nted")))
    changed = await ports.update({"enabled": False})
    assert changed.config.args == ("--token", "pl4nted")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_change_servers(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.update(FASTER, principal=a_principal(role))

    ports.assert_it_stays()


@pytest.mark.requirement("C6")
async def test_a_server_of_another_organization_is_not_changed(ports: Ports) -> None:
    with refused("mcp_server_not_found"):
        await ports.update(FASTER, principal=a_stranger())

    ports.assert_it_stays()


# --- failures ---


@pytest.mark.parametrize(
    "failure", [RACE, storage_away(), conflict("mcp_server_slug_taken", "It is taken.")], ids=lambda error: error.code
)
async def test_connections_stay_open_if_the_change_cannot_be_stored(
    ports: Ports, mocker: MockerFixture, failure: ServiceError
) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.return_value = STORED
    servers.save.side_effect = failure

    with refused(failure.code):
        await ports.update(FASTER)

    assert servers.save.await_args.kwargs["expected_version"] == 3
    ports.connections.forget.assert_not_awaited()


async def test_a_server_that_cannot_be_read_is_not_changed(ports: Ports, mocker: MockerFixture) -> None:
    servers = ports.servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.update(FASTER)

    servers.save.assert_not_awaited()


@pytest.mark.requirement("B1")
async def test_a_server_of_a_kind_that_the_organization_may_not_have_any_more_can_only_be_disabled(
    ports: Ports,
) -> None:
    permit_kinds(ports.state, "http")
    with refused("mcp_kind_not_permitted"):
        await ports.update({"command": "another"})
    ports.assert_it_stays()
    assert (await ports.update({"enabled": False})).config.enabled is False
    with refused("mcp_kind_not_permitted"):
        await ports.update({"enabled": True})


@pytest.mark.requirement("B7")
async def test_a_change_to_unregister_needs_a_shared_connection(ports: Ports) -> None:
    with refused("mcp_server_invalid"):
        await ports.update({"on_connection_loss": ConnectionLoss.UNREGISTER})
    ports.assert_it_stays()
    shared: Changes = {"on_connection_loss": ConnectionLoss.UNREGISTER, "isolation": Isolation.SHARED}
    await ports.update(shared)
    with refused("mcp_server_invalid"):
        await ports.update({"isolation": Isolation.RUN})


@pytest.mark.requirement("B7")
async def test_a_server_that_was_stored_with_a_strategy_without_effect_can_be_changed_otherwise(ports: Ports) -> None:
    stored = replace(STORED, config=replace(CONFIG, on_connection_loss=ConnectionLoss.UNREGISTER))
    ports.state.servers[SERVER] = stored
    assert (await ports.update(FASTER)).config == replace(stored.config, timeout_s=5.0)


@pytest.mark.requirement("B1")
async def test_a_change_of_declared_tools_needs_schemas_that_are_usable(ports: Ports) -> None:
    unusable = DeclaredTool(name="look", description="Looks.", parameters={"type": "object", "properties": 1})

    with refused("mcp_server_invalid"):
        await ports.update({"declared_tools": (unusable,)})
    ports.assert_it_stays()

    usable = replace(unusable, parameters={"type": "object"})
    assert (await ports.update({"declared_tools": (usable,)})).config.declared_tools == (usable,)
