"""Stored tools of workflow runs: encrypted at rest, decrypted to be listed and called."""

import json
from dataclasses import dataclass, field, replace
from typing import cast

from application.tools.ports import Box
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.server import McpServerConfig
from domain.secrets.secret import SecretRef, SecretValue
from domain.workflows.graph import HttpRequestConfig
from domain.workflows.inline_server import inline_server_json, inline_server_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedComponent:
    """An HTTP request as a tool. Everything in `hidden` is redacted from results.
    - `values` are outputs of upstream nodes; `inputs` those that the model does not set.
    - `credentials` are the values of secrets in headers.
    """

    name: str
    description: str
    parameters: JsonObject
    config: HttpRequestConfig = field(repr=False)
    values: JsonObject = field(repr=False)
    inputs: JsonObject = field(repr=False)
    credentials: dict[str, str] = field(repr=False)
    hidden: tuple[str, ...] = field(repr=False)
    timeout_s: float | None

    def sealed(self, box: Box) -> bytes:
        config = self.config
        hidden: list[JsonValue] = [*self.hidden]
        credentials: JsonObject = {**self.credentials}
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
                "values": self.values,
                "inputs": self.inputs,
                "credentials": credentials,
                "hidden": hidden,
                "timeout_s": self.timeout_s,
            },
        )

    @classmethod
    def opened(cls, sealed: bytes, box: Box) -> "SealedComponent":
        """The inverse of `sealed`. Raises ServiceError `secret_undecryptable`."""
        kept = _opened(sealed, box)
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
            values=cast(JsonObject, kept["values"]),
            inputs=cast(JsonObject, kept["inputs"]),
            credentials=cast("dict[str, str]", kept["credentials"]),
            hidden=tuple(cast("list[str]", kept["hidden"])),
            timeout_s=cast("float | None", kept["timeout_s"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedServer:
    """An MCP server as a tool: a registered server by its slug, or an inline server with its
    tools."""

    slug: str
    tools: tuple[str, ...] | None = None
    inline: McpServerConfig | None = field(default=None, repr=False)
    definitions: tuple[McpToolDefinition, ...] = ()
    instructions: str | None = None

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
