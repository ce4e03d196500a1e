"""MCP servers that a tool node defines itself: the rules of servers that are saved, and secrets by
name only."""

import pytest

from domain.json_value import JsonObject, JsonValue
from domain.mcp.auth import BearerAuth
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from domain.workflows.compiler import Compilation
from domain.workflows.graph import McpServerNodeConfig
from domain.workflows.inline_server import inline_server_json, inline_server_of
from tests.workflow_builders import agent, compiled, entrypoint, node

DESK: JsonObject = {"slug": "desk", "kind": "custom", "command": "desk-server", "args": ["--quiet"]}
REMOTE: JsonObject = {
    "slug": "tickets",
    "kind": "http",
    "url": "https://tickets.example/mcp",
    "headers": {"X-Team": {"secret": "TEAM"}},
    "auth": {"type": "bearer", "token": {"secret": "TICKETS"}},
    "trusted": True,
    "isolation": "thread",
    "timeout_s": 5,
}


def wired(server: JsonValue, mode: str = "tool") -> Compilation:
    desk = node("desk", "mcp_server", mode, server=server)
    return compiled(entrypoint(), agent("guide"), desk, "start -> guide", "desk -> guide.tools")


def settings_of(compilation: Compilation) -> McpServerConfig:
    assert compilation.plan is not None, compilation.faults
    config = compilation.plan.by_id["desk"].config
    assert isinstance(config, McpServerNodeConfig)
    assert config.inline is not None
    return config.inline


@pytest.mark.requirement("F2")
def test_a_node_may_define_its_server() -> None:
    assert settings_of(wired(DESK)) == McpServerConfig(
        slug="desk", kind=McpServerKind.CUSTOM, command="desk-server", args=("--quiet",)
    )
    compilation = wired(REMOTE)
    remote = settings_of(compilation)
    assert (remote.isolation, remote.trusted, remote.timeout_s) == (Isolation.THREAD, True, 5.0)
    assert remote.auth == BearerAuth(token=SecretRef("TICKETS"))
    assert {placed.text for placed in compilation.secrets} == {"TEAM", "TICKETS"}


@pytest.mark.parametrize("server", [DESK, REMOTE])
def test_what_is_kept_of_a_defined_server_gives_the_same_settings(server: JsonObject) -> None:
    settings = settings_of(wired(server))
    assert inline_server_of(inline_server_json(settings)) == settings


@pytest.mark.requirement("C7", "F2")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"env": {"TOKEN": "plain"}}, "config.server.env.TOKEN"),
        ({"env": {"TOKEN": {"secret": "not a name"}}}, "config.server.env.TOKEN.secret"),
        ({"kind": "npm", "package": "x"}, "config.server.kind"),
        ({"kind": "magic"}, "config.server.kind"),
        ({"path": "/srv/desk"}, "config.server.path"),
        ({"slug": "Desk!"}, "config.server.slug"),
        ({"command": None}, "config.server.command"),
        ({"url": "https://a.example"}, "config.server.url"),
        ({"args": "--quiet"}, "config.server.args"),
        ({"auth": {"type": "oauth_client_credentials"}}, "config.server.auth.type"),
        ({"speed": 3}, "config.server.speed"),
    ],
)
def test_what_is_wrong_with_a_defined_server_is_said_where_it_stands(changes: JsonObject, path: str) -> None:
    compilation = wired({**DESK, **changes})
    assert compilation.plan is None
    assert path in {fault.path for fault in compilation.faults}
    assert {fault.node_ids for fault in compilation.faults} == {("desk",)}


def test_a_step_names_a_registered_server() -> None:
    step = node("desk", "mcp_server", "normal", server=DESK, call="look")
    compilation = compiled(entrypoint(), step, "start -> desk")
    assert [fault.path for fault in compilation.faults] == ["config.server"]


@pytest.mark.requirement("B6", "F2")
def test_a_defined_server_and_a_registered_one_of_its_slug_clash_at_one_agent() -> None:
    compilation = compiled(
        entrypoint(),
        agent("guide"),
        node("own", "mcp_server", "tool", server=DESK),
        node("registered", "mcp_server", "tool", server="desk"),
        "start -> guide",
        "own -> guide.tools",
        "registered -> guide.tools",
    )
    assert [fault.code.value for fault in compilation.faults] == ["tool_name_clash"]
