"""What is kept of a workflow run's tools: unreadable where it is stored, and the same when it is
opened."""

import json
from dataclasses import replace

from application.workflows.sealed_tools import SealedComponent, SealedServer
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.secrets.secret import SecretRef
from domain.workflows.graph import HttpRequestConfig
from infrastructure.secrets.secret_box import SecretBox

BOX = SecretBox(["a key"])
TOKEN = "token-that-nobody-sees"


def test_a_component_is_opened_as_it_was_sealed() -> None:
    component = SealedComponent(
        name="weather",
        description="The weather.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}},
        config=HttpRequestConfig(
            method="POST",
            url="https://a.example/{{inputs.city}}",
            headers=(("X-Key", SecretRef("KEY")), ("X-Team", "{{start.team}}")),
            query=(("limit", 3), ("q", "{{inputs.city}}")),
            body={"days": [1, None, "ü\ud800"]},
            idempotent=True,
        ),
        values={"start": {"team": "north"}},
        inputs={"city": TOKEN},
        secrets={"token": "KEY"},
        timeout_s=4.5,
    )
    sealed, bound = component.sealed(BOX), component.sealed_values(BOX)
    assert TOKEN.encode() not in sealed + bound
    assert SealedComponent.opened(sealed, bound, BOX) == component
    assert TOKEN not in repr(component)
    without = replace(component, values={}, inputs={})
    assert SealedComponent.opened(sealed, None, BOX) == without, "values are in the part that expires"


def test_a_component_of_an_earlier_release_has_its_values_and_secrets_in_one_part() -> None:
    stored = {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object"},
        "method": "GET",
        "url": "https://a.example/",
        "headers": [["X-Key", {"secret": "KEY"}]],
        "query": [],
        "body": None,
        "idempotent": False,
        "values": {"start": {"team": "north"}},
        "inputs": {"token": TOKEN},
        "credentials": {"KEY": TOKEN},
        "hidden": [TOKEN],
        "timeout_s": None,
    }
    opened = SealedComponent.opened(BOX.encrypt(json.dumps(stored).encode()), None, BOX)
    assert (opened.values, opened.inputs) == (stored["values"], {"token": TOKEN})
    assert (opened.secrets, opened.hidden) == ({}, (TOKEN,))


def test_a_server_is_opened_as_it_was_sealed() -> None:
    definition = McpToolDefinition(
        name="look",
        description="Looks.",
        input_schema={"type": "object"},
        output_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        read_only_hint=True,
        destructive_hint=False,
        display={"title": "Look"},
    )
    inline = McpServerConfig(
        slug="desk", kind=McpServerKind.CUSTOM, command="desk", env={"TOKEN": SecretRef("DESK")}, trusted=True
    )
    server = SealedServer(
        slug="desk", tools=("look",), inline=inline, definitions=(definition,), instructions="Look first."
    )
    opened = SealedServer.opened(server.sealed(BOX), BOX)
    assert opened == server
    assert opened.definitions[0].digest == definition.digest
    registered = SealedServer(slug="files")
    assert SealedServer.opened(registered.sealed(BOX), BOX) == registered


def test_a_server_of_an_earlier_release_is_of_no_team() -> None:
    server = SealedServer(slug="files", team="finance")
    assert SealedServer.opened(server.sealed(BOX), BOX) == server
    stored: dict[str, object] = {
        "slug": "files",
        "tools": None,
        "inline": None,
        "definitions": [],
        "instructions": None,
    }
    assert SealedServer.opened(BOX.encrypt(json.dumps(stored).encode()), BOX) == SealedServer(slug="files")
