"""A field of an agent or an MCP server is in the domain, the HTTP bodies, the HTTP view and the
form."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from domain.agents.agent import AgentSettings
from domain.mcp.server import McpServerConfig
from interfaces.http.agents.schemas import CreateAgentBody, UpdateAgentBody
from interfaces.http.agents.views import AgentView
from interfaces.http.bodies import Body
from interfaces.http.mcp_servers.schemas import McpServerBody, UpdateMcpServerBody
from interfaces.http.mcp_servers.views import McpServerView

IN_ROWS = {
    "mcp_servers": "in servers",
    "tool_allowlist": "'allowlist_entries'",
    "tool_policies": "parts/rule_row.html",
    "canary_tokens": "parts/canary_row.html",
    "env": "in groups.items()",
    "headers": "in groups.items()",
    "auth": 'name="auth.type"',
    "kind": 'name="kind"',
}
"""Fields of several inputs, with the words of the template that show them."""
TEMPLATES = Path(__file__).parents[2] / "src/interfaces/console/templates"


@pytest.mark.parametrize(
    ("settings", "bodies", "view"),
    [
        (AgentSettings, (CreateAgentBody, UpdateAgentBody), AgentView),
        (McpServerConfig, (McpServerBody, UpdateMcpServerBody), McpServerView),
    ],
    ids=["agent", "server"],
)
def test_bodies_and_view_have_the_fields_of_the_settings(
    settings: type, bodies: tuple[type[Body], ...], view: type
) -> None:
    names = {field.name for field in fields(settings)}

    assert [set(body.model_fields) for body in bodies] == [names, names]
    assert names - view.__annotations__.keys() == set()


@pytest.mark.parametrize(
    ("settings", "templates"),
    [
        (AgentSettings, ["parts/agent_form.html"]),
        (McpServerConfig, ["server_form.html"]),
    ],
    ids=["agent", "server"],
)
def test_the_form_shows_the_fields_of_the_settings(settings: type, templates: list[str]) -> None:
    text = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in templates)
    shown = set(re.findall(r"fields\.\w+\((?:form, )?(?:faults, )?'(\w+)['.]", text))
    in_rows = {name for name, words in IN_ROWS.items() if words in text}

    assert {field.name for field in fields(settings)} - shown - in_rows == set()
