"""PreviewMcpImport: the same answer as the import, without storing anything."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.import_mcp_servers import ImportMcpServers, ImportMcpServersCommand
from application.mcp.ports import McpServerStore
from application.mcp.preview_mcp_import import PreviewMcpImport
from application.mcp.register_mcp_server import RegisterMcpServer
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.json_value import JsonValue
from domain.mcp.kinds import KINDS, NEW_ORGANIZATION_KINDS
from infrastructure.http.egress import EgressPolicy
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_server, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_state_with_servers, a_switch, certificates_of, permit_kinds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, roles_below
from tests.unit.application.team_ports import team_checks

THERE = a_server(McpServerId(numbered("mcp", 99)), slug="taken")
ENTRIES: dict[str, JsonValue] = {
    "Taken": {"command": "a-server"},
    "Time": {"command": "npx", "args": ["-y", "server-x"], "env": {"TOKEN": "s3cret"}, "cwd": "/srv"},
    "time": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
    "nothing": {},
    "inside": {"url": "http://127.0.0.1/mcp"},
    "in clear": {"command": "s", "args": ["--token", "pl4nted"]},
    "list": ["not", "an", "object"],
}


def previewing(role: Role = Role.ADMIN) -> ImportMcpServersCommand:
    return ImportMcpServersCommand(principal=a_principal(role), entries=ENTRIES)


def a_preview() -> PreviewMcpImport:
    state = a_state_with_servers(THERE)
    return PreviewMcpImport(servers=InMemoryMcpServerStore(state), switch=a_switch(state), outbound=EgressPolicy())


@pytest.mark.requirement("B1", "B12")
@pytest.mark.parametrize("kinds", [KINDS, NEW_ORGANIZATION_KINDS], ids=["all kinds", "kinds of a new organization"])
async def test_a_preview_shows_what_the_import_then_does_and_stores_nothing(kinds: tuple[str, ...]) -> None:
    state = a_state_with_servers(THERE)
    servers = InMemoryMcpServerStore(state)
    preview = PreviewMcpImport(servers=servers, switch=a_switch(state), outbound=EgressPolicy())
    register = RegisterMcpServer(
        servers=servers,
        switch=a_switch(state),
        outbound=EgressPolicy(),
        schemas=JsonSchemaValidator(),
        certificates=certificates_of(state),
        team_checks=team_checks(state),
        clock=FixedClock(),
        ids=SequentialIds(),
    )

    permit_kinds(state, *kinds)
    shown = await preview.execute(previewing())
    assert (state.servers, state.audit) == ({THERE.id: THERE}, {})
    done = await ImportMcpServers(register=register).execute(previewing())

    assert [(each.name, each.slug, each.remarks) for each in shown] == [
        (each.name, each.slug, each.remarks) for each in done
    ]
    assert [each.config for each in shown] == [None if each.server is None else each.server.config for each in done]
    assert [each.slug for each in shown if each.config] == ["time", "time-2"]


@pytest.mark.requirement("B12")
async def test_a_preview_names_the_secrets_that_would_be_stored() -> None:
    preview = a_preview()

    shown = await preview.execute(previewing())

    assert [each.secrets for each in shown if each.config] == [("env.TOKEN",), ("headers.Authorization",)]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_preview_an_import(mocker: MockerFixture, role: Role) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)

    with refused("role_insufficient"):
        await PreviewMcpImport(
            servers=servers, switch=a_switch(a_state_with_servers()), outbound=EgressPolicy()
        ).execute(previewing(role))

    servers.get.assert_not_awaited()


async def test_a_storage_failure_ends_the_preview_instead_of_skipping_the_entry(mocker: MockerFixture) -> None:
    servers = mocker.create_autospec(McpServerStore, instance=True)
    servers.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await PreviewMcpImport(
            servers=servers, switch=a_switch(a_state_with_servers()), outbound=EgressPolicy()
        ).execute(previewing())
