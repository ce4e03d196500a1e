"""ImportMcpServers: which servers the entries of a desktop client's file become, and which are
skipped."""

from collections.abc import Awaitable
from typing import Any

import pytest
from pytest_mock import MockerFixture

from application.mcp.import_mcp_servers import (
    ImportedEntry,
    ImportMcpServers,
    ImportMcpServersCommand,
)
from application.mcp.import_outcome import ImportOutcome
from application.mcp.register_mcp_server import RegisterMcpServer
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.json_value import JsonValue
from domain.mcp.network import ServerNetwork
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_server, numbered
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.mcp_builders import a_state_with_servers, a_switch, certificates_of
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, roles_below
from tests.unit.application.team_ports import team_checks

NPM, PYTHON, OCI, CUSTOM, SSE, HTTP, A2A = McpServerKind


async def imported(entries: dict[str, JsonValue], state: InMemoryState | None = None) -> tuple[ImportedEntry, ...]:
    state = state or a_state_with_servers()
    register = RegisterMcpServer(
        servers=InMemoryMcpServerStore(state),
        switch=a_switch(state),
        outbound=EgressPolicy(),
        schemas=JsonSchemaValidator(),
        certificates=certificates_of(state),
        team_checks=team_checks(state),
        clock=StepClock(),
        ids=SequentialIds(),
    )
    return await ImportMcpServers(register=register).execute(
        ImportMcpServersCommand(principal=a_principal(), entries=entries)
    )


async def config_of(entry: JsonValue) -> McpServerConfig:
    (result,) = await imported({"x": entry})
    assert result.server is not None, result.remarks
    return result.server.config


def started(kind: McpServerKind, **settings: Any) -> McpServerConfig:
    return McpServerConfig(slug="x", kind=kind, **settings)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ("npx", ["-y", "server-x", "/srv", "-v"], started(NPM, package="server-x", args=("/srv", "-v"))),
        ("npx", ["-y", "@s/server@1.2.3"], started(NPM, package="@s/server@1.2.3")),
        ("npx", ["--yes", "@s/server@latest"], started(NPM, package="@s/server")),
        ("npx", ["-y", "--package=@s/x", "cmd", "a"], started(NPM, package="@s/x", command="cmd", args=("a",))),
        ("npx", ["-p", "@s/x", "cmd"], started(NPM, package="@s/x", command="cmd")),
        ("/usr/local/bin/npx", ["server-x"], started(NPM, package="server-x")),
        ("C:\\Program Files\\nodejs\\npx.cmd", ["server-x"], started(NPM, package="server-x")),
        ("cmd", ["/c", "npx", "-y", "server-x", "a"], started(NPM, package="server-x", args=("a",))),
        ("uvx", ["mcp-server-time"], started(PYTHON, package="mcp-server-time")),
        ("uvx", ["mcp-server-time@1.2"], started(PYTHON, package="mcp-server-time==1.2")),
        ("uvx", ["mcp-server-time@latest", "--utc"], started(PYTHON, package="mcp-server-time", args=("--utc",))),
        (
            "uvx",
            ["--from", "p[x]>=1, <2", "cmd", "a"],
            started(PYTHON, package="p[x]>=1,<2", command="cmd", args=("a",)),
        ),
        ("uvx", ["--with", "mcp<2", "--with", "a,b", "p"], started(PYTHON, package="p mcp<2 a b")),
        ("uv", ["tool", "run", "p"], started(PYTHON, package="p")),
        ("pipx", ["run", "p", "a"], started(PYTHON, package="p", args=("a",))),
        ("pipx", ["run", "--spec", "p==1", "cmd"], started(PYTHON, package="p==1", command="cmd")),
        ("node", ["/srv/server.js"], started(CUSTOM, command="node", args=("/srv/server.js",))),
        ("docker", ["run", "-i", "--rm", "mcp/time:1", "--utc"], started(OCI, package="mcp/time:1", args=("--utc",))),
        ("docker", ["run", "--network", "none", "x"], started(OCI, package="x", network=ServerNetwork.NONE)),
        ("podman", ["run", "--rm", "-i", "--name=x", "--pull", "always", "x"], started(OCI, package="x")),
        (
            "docker",
            ["run", "-e", "A", "-e", "B=c=d", "--env=E=f", "x"],
            started(OCI, package="x", env={"B": "c=d", "E": "f"}),
        ),
    ],
)
async def test_a_command_becomes_the_kind_that_it_stands_for(
    command: str, args: list[str], expected: McpServerConfig
) -> None:
    assert await config_of({"command": command, "args": [*args]}) == expected


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("npx", ["-y", "git+https://example.org/x"]),
        ("npx", ["./server"]),
        ("npx", ["--call", "echo"]),
        ("npx", []),
        ("npx", ["-y", "/srv/x.tgz"]),
        ("uvx", ["--from", "git+https://example.org/x", "cmd"]),
        ("uvx", ["--python", "3.12", "p"]),
        ("uvx", ["--from"]),
        ("uv", ["run", "server.py"]),
        ("pipx", ["run"]),
        ("docker", ["run", "-i", "-v", "/srv:/srv", "mcp/filesystem", "/srv"]),
        ("docker", ["run", "--network=host", "x"]),
        ("docker", ["run", "-e"]),
        ("docker", ["run", "--network=none", "--net", "host", "x"]),
        ("docker", ["run", "-i"]),
        ("docker", ["run", "-i", "--rm=false", "x"]),
        ("docker", ["run", "-i", "Not An Image"]),
        ("docker", ["exec", "-i", "x", "server"]),
    ],
)
async def test_what_cannot_be_installed_the_same_is_run_in_place(command: str, args: list[str]) -> None:
    assert await config_of({"command": command, "args": [*args]}) == started(CUSTOM, command=command, args=tuple(args))


@pytest.mark.requirement("B1")
async def test_a_command_with_its_arguments_inside_is_read_like_one_beside_them() -> None:
    inside: dict[str, JsonValue] = {"path": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}
    beside: dict[str, JsonValue] = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}
    assert await config_of({"source": "custom", "command": inside}) == await config_of(beside)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"url": "https://example.org/mcp"}, HTTP),
        ({"serverUrl": "https://example.org/mcp"}, HTTP),
        ({"httpUrl": "https://example.org/sse"}, HTTP),
        ({"type": "http", "url": "https://example.org/sse"}, HTTP),
        ({"type": "streamable-http", "url": "https://example.org/mcp"}, HTTP),
        ({"type": "sse", "url": "https://example.org/mcp"}, SSE),
        ({"url": "https://example.org/sse"}, SSE),
        ({"transport": "SSE", "url": "https://example.org/x"}, SSE),
    ],
)
async def test_a_url_becomes_a_remote_server(entry: dict[str, JsonValue], kind: McpServerKind) -> None:
    config = await config_of({**entry, "headers": {"Authorization": "Bearer s3cret"}})
    assert (config.kind, config.isolation) == (kind, Isolation.SHARED)
    assert config.headers == {"Authorization": "Bearer s3cret"}


async def test_the_environment_is_taken_over_and_a_switched_off_server_stays_so() -> None:
    config = await config_of({"command": "s", "env": {"TOKEN": "s3cret", "PORT": 1, "ON": True}, "disabled": True})
    assert config.env == {"TOKEN": "s3cret", "PORT": "1", "ON": "true"}
    assert not config.enabled


async def test_what_was_left_out_or_is_still_to_be_filled_in_is_remarked_without_values() -> None:
    (result,) = await imported(
        {"x": {"command": "s", "args": ["${workspaceFolder}"], "env": {"KEY": "${input:key}"}, "cwd": "/srv/s3cret"}}
    )
    assert result.outcome is ImportOutcome.CREATED
    assert len(result.remarks) == 3
    assert "s3cret" not in " ".join(result.remarks)
    for word in ("cwd", "env.KEY", "args"):
        assert word in " ".join(result.remarks)


@pytest.mark.requirement("B1")
async def test_names_become_legal_slugs_that_differ() -> None:
    names = ["My Server!", "my-server", "МОЙ", "a" * 40, "a" * 41, "GitHub (work)"]
    results = await imported({name: {"command": "s"} for name in names})
    assert [result.slug for result in results] == [
        "my-server",
        "my-server-2",
        "server",
        "a" * 32,
        "a" * 30 + "-2",
        "github-work",
    ]
    assert {result.outcome for result in results} == {ImportOutcome.CREATED}


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("npx server", "object"),
        ({}, "command"),
        ({"command": ""}, "command"),
        ({"command": 5}, "command"),
        ({"command": "s", "args": "a"}, "args"),
        ({"command": "s", "env": {"A": ["s3cret"]}}, "env"),
        ({"command": "s", "url": "https://example.org"}, "url"),
        ({"url": "file:///etc"}, "url"),
    ],
)
async def test_an_entry_that_makes_no_sense_is_skipped_with_the_reason_and_its_siblings_stand(
    entry: JsonValue, word: str
) -> None:
    wrong, right = await imported({"wrong": entry, "right": {"command": "s"}})
    assert (wrong.outcome, wrong.server, right.outcome) == (ImportOutcome.SKIPPED, None, ImportOutcome.CREATED)
    assert word in " ".join(wrong.remarks)
    assert "s3cret" not in " ".join(wrong.remarks)


@pytest.mark.requirement("B1")
async def test_a_server_that_is_there_already_stays_as_it_is() -> None:
    state = a_state_with_servers()
    there = a_server(McpServerId(numbered("mcp", 99)), slug="time")
    state.servers[there.id] = there
    (again,) = await imported({"Time": {"command": "second"}}, state)
    assert again.outcome is ImportOutcome.SKIPPED
    assert list(state.servers.values()) == [there]


def importing(register: RegisterMcpServer, principal: Principal) -> Awaitable[tuple[ImportedEntry, ...]]:
    command = ImportMcpServersCommand(principal=principal, entries={"a": {"command": "s"}, "b": {"command": "t"}})
    return ImportMcpServers(register=register).execute(command)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_import(mocker: MockerFixture, role: Role) -> None:
    register = mocker.create_autospec(RegisterMcpServer, instance=True)

    with refused("role_insufficient"):
        await importing(register, a_principal(role))

    register.execute.assert_not_awaited()


async def test_a_storage_failure_ends_the_import_instead_of_skipping_the_entry(mocker: MockerFixture) -> None:
    register = mocker.create_autospec(RegisterMcpServer, instance=True)
    register.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await importing(register, a_principal())

    register.execute.assert_awaited_once()
