"""Stored tools of workflow runs: encrypted at rest, decrypted to be listed and called."""

import json
from dataclasses import dataclass, field, replace
from typing import cast

from application.tools.ports import Box
from domain.ids import AgentId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.server import McpServerConfig
from domain.secrets.secret import SecretRef, SecretValue
from domain.tools.capabilities import ToolType
from domain.workflows.graph import HttpRequestConfig
from domain.workflows.inline_server import inline_server_json, inline_server_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedComponent:
    """An HTTP request as a tool. It names secrets and holds none.
    - `values` are outputs of upstream nodes; `inputs` those that the model does not set.
    - `secrets` are the names of secrets by input.
    - `hidden` are values to redact from results, of a run that an earlier release started.
    """

    name: str
    description: str
    parameters: JsonObject
    config: HttpRequestConfig = field(repr=False)
    values: JsonObject = field(repr=False)
    inputs: JsonObject = field(repr=False)
    secrets: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = field(default=(), repr=False)
    timeout_s: float | None

    def sealed(self, box: Box) -> bytes:
        """The configuration, encrypted."""
        config = self.config
        secrets: JsonObject = {**self.secrets}
        return _sealed(
            box,
            {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
                "method": config.method,
                "url": config.url,
                "headers": [[name, _header_json(value)] for name, value in config.headers],
                "query": [[name, value] for name, value in config.query],
                "body": config.body,
                "idempotent": config.idempotent,
                "secrets": secrets,
                "timeout_s": self.timeout_s,
            },
        )

    def sealed_values(self, box: Box) -> bytes:
        """The bound values, encrypted."""
        return _sealed(box, {"values": self.values, "inputs": self.inputs})

    @classmethod
    def opened(cls, sealed: bytes, bound: bytes | None, box: Box) -> "SealedComponent":
        """The inverse of `sealed` and `sealed_values`. Raises ServiceError
        `secret_undecryptable`."""
        kept = _opened(sealed, box)
        values = kept if bound is None else _opened(bound, box)  # an earlier release stored them together
        config = HttpRequestConfig(
            method=str(kept["method"]),
            url=str(kept["url"]),
            headers=tuple((name, _header_of(value)) for name, value in _pairs(kept["headers"])),
            query=tuple(_pairs(kept["query"])),
            body=kept["body"],
            idempotent=kept["idempotent"] is True,
        )
        return cls(
            name=str(kept["name"]),
            description=str(kept["description"]),
            parameters=cast(JsonObject, kept["parameters"]),
            config=config,
            values=cast(JsonObject, values.get("values", {})),
            inputs=cast(JsonObject, values.get("inputs", {})),
            secrets=cast("dict[str, str]", kept.get("secrets", {})),
            hidden=tuple(cast("list[str]", kept.get("hidden", []))),
            timeout_s=cast("float | None", kept["timeout_s"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedServer:
    """An MCP server as a tool: a registered server by its slug, for a run of `team`, or an inline
    server with its tools."""

    slug: str
    tools: tuple[str, ...] | None = None
    inline: McpServerConfig | None = field(default=None, repr=False)
    definitions: tuple[McpToolDefinition, ...] = ()
    instructions: str | None = None
    team: str | None = None

    def sealed(self, box: Box) -> bytes:
        tools: list[JsonValue] | None = None if self.tools is None else [*self.tools]
        return _sealed(
            box,
            {
                "slug": self.slug,
                "tools": tools,
                "inline": None if self.inline is None else inline_server_json(self.inline),
                "definitions": [definition.as_json() for definition in self.definitions],
                "instructions": self.instructions,
                "team": self.team,
            },
        )

    @classmethod
    def opened(cls, sealed: bytes, box: Box) -> "SealedServer":
        """The inverse of `sealed`. Raises ServiceError `secret_undecryptable`."""
        kept = _opened(sealed, box)
        tools, inline = kept["tools"], kept["inline"]
        return cls(
            slug=str(kept["slug"]),
            tools=tuple(str(name) for name in tools) if isinstance(tools, list) else None,
            inline=inline_server_of(inline) if isinstance(inline, dict) else None,
            definitions=tuple(
                _definition_of(stored) for stored in cast("list[JsonObject | list[JsonObject]]", kept["definitions"])
            ),
            instructions=cast("str | None", kept["instructions"]),
            team=cast("str | None", kept.get("team")),  # none in what an earlier release sealed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedNativeTool:
    """A native tool, by its kind."""

    tool: ToolType

    def sealed(self, box: Box) -> bytes:
        return _sealed(box, {"tool": self.tool.value})

    @classmethod
    def opened(cls, sealed: bytes, box: Box) -> "SealedNativeTool":
        """The inverse of `sealed`. Raises ServiceError `secret_undecryptable`."""
        return cls(tool=ToolType(str(_opened(sealed, box)["tool"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedAgent:
    """An agent as a tool. `nodes` are the tool nodes that are wired to it."""

    agent_id: AgentId
    name: str
    tool_name: str
    description: str
    timeout_s: float
    nodes: tuple[str, ...]

    def sealed(self, box: Box) -> bytes:
        nodes: list[JsonValue] = [*self.nodes]
        return _sealed(
            box,
            {
                "agent_id": self.agent_id,
                "name": self.name,
                "tool_name": self.tool_name,
                "description": self.description,
                "timeout_s": self.timeout_s,
                "nodes": nodes,
            },
        )

    @classmethod
    def opened(cls, sealed: bytes, box: Box) -> "SealedAgent":
        """The inverse of `sealed`. Raises ServiceError `secret_undecryptable`."""
        kept = _opened(sealed, box)
        return cls(
            agent_id=AgentId(str(kept["agent_id"])),
            name=str(kept["name"]),
            tool_name=str(kept["tool_name"]),
            description=str(kept["description"]),
            timeout_s=cast(float, kept["timeout_s"]),
            nodes=tuple(cast("list[str]", kept["nodes"])),
        )


def _definition_of(stored: JsonObject | list[JsonObject]) -> McpToolDefinition:
    if isinstance(stored, dict):
        return McpToolDefinition.from_json(stored)
    first_parts, display = stored  # of a workflow run that an earlier release started
    return replace(McpToolDefinition.from_json(first_parts), display=display)


def _sealed(box: Box, value: JsonObject) -> bytes:
    return box.encrypt(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _opened(sealed: bytes, box: Box) -> JsonObject:
    value: JsonObject = json.loads(box.decrypt(sealed).decode("utf-8", "surrogatepass"))
    return value


def _pairs(stored: JsonValue) -> list[tuple[str, JsonValue]]:
    return [(name, value) for name, value in cast("list[list[str]]", stored)]


def _header_json(value: SecretValue) -> JsonValue:
    return {"secret": value.name} if isinstance(value, SecretRef) else value


def _header_of(stored: JsonValue) -> SecretValue:
    return SecretRef(str(stored["secret"])) if isinstance(stored, dict) else str(stored)
