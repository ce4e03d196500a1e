"""MCP servers and catalogs to rows and back."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from domain.ids import McpServerId, OrganizationId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpCatalog, McpToolDefinition, SkippedTool
from domain.mcp.installation import Installation
from domain.mcp.pinning import PinnedTool
from domain.mcp.server import (
    ConnectionLoss,
    ElicitationPolicy,
    Isolation,
    McpServer,
    McpServerConfig,
    McpServerKind,
    OutputValidation,
    PassingPolicy,
)
from domain.rate_limit import RateLimit
from domain.secrets.secret import SecretValue
from infrastructure.persistence.columns.auth_json import auth_from_json, auth_to_json, value_from_json, value_to_json
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.runtime.json_text import decode, encode


def server_row(server: McpServer, box: SecretBox) -> dict[str, object]:
    """Columns of `mcp_server`."""
    config, installation = server.config, server.installation
    secrets: JsonObject = {
        "env": _values_to_json(config.env),
        "headers": _values_to_json(config.headers),
        "auth": auth_to_json(config.auth),
    }
    return {
        "id": server.id,
        "organization_id": server.organization_id,
        "created_at": server.created_at,
        "slug": config.slug,
        "version": server.version,
        "config": _config_to_json(config),
        "secrets": box.encrypt(encode(secrets).encode()),
        "updated_at": server.updated_at,
        "installed_version": installation.version if installation else None,
        "installed_location": installation.location if installation else None,
        "installed_at": installation.installed_at if installation else None,
    }


def server_of(row: AnyRow, box: SecretBox) -> McpServer:
    """From a row of `mcp_server`."""
    return McpServer(
        id=McpServerId(row.id),
        organization_id=OrganizationId(row.organization_id),
        version=row.version,
        config=_config_from_json(row.config, decode(box.decrypt(row.secrets).decode())),
        created_at=row.created_at,
        updated_at=row.updated_at,
        installation=_installation_of(row),
    )


def _installation_of(row: AnyRow) -> Installation | None:
    if row.installed_location is None:
        return None
    return Installation(version=row.installed_version, location=row.installed_location, installed_at=row.installed_at)


def state_row(organization_id: OrganizationId, catalog: McpCatalog) -> dict[str, object]:
    """Columns of `mcp_server_state`."""
    skipped: list[JsonValue] = [{"name": tool.name, "reason": tool.reason} for tool in catalog.skipped]
    description: JsonObject = {
        "protocol_version": catalog.protocol_version,
        "server_name": catalog.server_name,
        "instructions": catalog.instructions,
        "skipped": skipped,
    }
    return {
        "server_id": catalog.server_id,
        "organization_id": organization_id,
        "server_version": catalog.server_version,
        "description": description,
        "taken_at": catalog.taken_at,
        "revision": catalog.revision + 1,
    }


NEW, CHANGED, DORMANT = "new", "changed", "dormant"
"""Standings of tools that are not simply approved and listed."""


def definition_rows(organization_id: OrganizationId, catalog: McpCatalog) -> list[dict[str, object]]:
    """Columns of `mcp_tool_definition`, one row for each tool and each dormant definition."""

    def row(position: int, tool: McpToolDefinition) -> dict[str, object]:
        standing = former = None
        if position >= len(catalog.tools):
            standing = DORMANT
        elif tool.name in catalog.quarantined:
            former = catalog.quarantined[tool.name]
            standing = NEW if former is None else CHANGED
        return {
            "server_id": catalog.server_id,
            "position": position,
            "organization_id": organization_id,
            "name": tool.name,
            "definition": _definition_to_json(tool),
            "standing": standing,
            "approved_definition": None if former is None else _definition_to_json(former),
        }

    return [row(position, tool) for position, tool in enumerate((*catalog.tools, *catalog.dormant))]


def pinned_tool_of(row: AnyRow) -> PinnedTool:
    """From a row of `mcp_tool_definition` that is not dormant."""
    definition = _definition_from_json(row.definition)
    if row.standing is None:
        return PinnedTool(definition=definition, approved=definition)
    former = None if row.approved_definition is None else _definition_from_json(row.approved_definition)
    return PinnedTool(definition=definition, approved=former)


def catalog_of(state: AnyRow, definitions: Sequence[AnyRow]) -> McpCatalog:
    """From a row of `mcp_server_state` and the rows of its tools, in order."""
    description = cast("dict[str, Any]", state.description)
    listed = [pinned_tool_of(row) for row in definitions if row.standing != DORMANT]
    dormant = [_definition_from_json(row.definition) for row in definitions if row.standing == DORMANT]
    return McpCatalog(
        server_id=McpServerId(state.server_id),
        server_version=state.server_version,
        protocol_version=description["protocol_version"],
        server_name=description["server_name"],
        instructions=description["instructions"],
        tools=tuple(tool.definition for tool in listed),
        skipped=tuple(SkippedTool(name=tool["name"], reason=tool["reason"]) for tool in description["skipped"]),
        taken_at=state.taken_at,
        quarantined={tool.definition.name: tool.approved for tool in listed if tool.approved is not tool.definition},
        dormant=tuple(dormant),
        revision=state.revision,
    )


def _config_to_json(config: McpServerConfig) -> JsonObject:
    """Everything but `env`, `headers` and `auth`, and the names of the secrets they refer to."""
    return {
        "slug": config.slug,
        "kind": config.kind.value,
        "package": config.package,
        "version": config.version,
        "path": config.path,
        "command": config.command,
        "args": list(config.args),
        "url": config.url,
        "trusted": config.trusted,
        "isolation": config.isolation.value,
        "on_connection_loss": config.on_connection_loss.value,
        "output_validation": config.output_validation.value,
        "elicitation": config.elicitation.value,
        "sampling": config.sampling.value,
        "roots": config.roots.value,
        "timeout_s": config.timeout_s,
        "idle_timeout_s": config.idle_timeout_s,
        "max_response_bytes": config.max_response_bytes,
        "max_concurrency": config.max_concurrency,
        "rate_limit": _rate_limit_to_json(config.rate_limit),
        "enabled": config.enabled,
        "secrets": [*config.secret_names],
    }


def _values_to_json(values: Mapping[str, SecretValue]) -> JsonObject:
    return {name: value_to_json(value) for name, value in values.items()}


def _values_from_json(stored: dict[str, str | dict[str, str]]) -> dict[str, SecretValue]:
    return {name: value_from_json(value) for name, value in stored.items()}


def _config_from_json(stored: JsonValue, secrets: JsonValue) -> McpServerConfig:
    config = cast("dict[str, Any]", stored)
    secret = cast("dict[str, Any]", secrets)
    return McpServerConfig(
        slug=config["slug"],
        kind=McpServerKind(config["kind"]),
        # Servers stored before there were packages have none.
        package=config.get("package"),
        version=config.get("version"),
        path=config.get("path"),
        command=config["command"],
        args=tuple(config["args"]),
        env=_values_from_json(secret["env"]),
        url=config["url"],
        headers=_values_from_json(secret["headers"]),
        auth=auth_from_json(secret.get("auth")),
        trusted=config["trusted"],
        isolation=Isolation(config["isolation"]),
        on_connection_loss=ConnectionLoss(config.get("on_connection_loss", ConnectionLoss.MARK_UNHEALTHY)),
        output_validation=OutputValidation(config["output_validation"]),
        elicitation=ElicitationPolicy(config.get("elicitation", ElicitationPolicy.DECLINE)),
        sampling=PassingPolicy(config.get("sampling", PassingPolicy.DECLINE)),
        roots=PassingPolicy(config.get("roots", PassingPolicy.DECLINE)),
        timeout_s=config["timeout_s"],
        idle_timeout_s=config["idle_timeout_s"],
        max_response_bytes=config["max_response_bytes"],
        max_concurrency=config["max_concurrency"],
        rate_limit=_rate_limit_from_json(config.get("rate_limit")),
        enabled=config["enabled"],
    )


def _rate_limit_to_json(limit: RateLimit | None) -> JsonValue:
    return None if limit is None else {"calls": limit.calls, "per_s": limit.per_s}


def _rate_limit_from_json(stored: JsonValue) -> RateLimit | None:
    if stored is None:
        return None
    limit = cast("dict[str, Any]", stored)
    return RateLimit(calls=limit["calls"], per_s=limit["per_s"])


def _definition_to_json(tool: McpToolDefinition) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "read_only_hint": tool.read_only_hint,
        "idempotent_hint": tool.idempotent_hint,
        "destructive_hint": tool.destructive_hint,
        **({"display": tool.display} if tool.display else {}),
    }


def _definition_from_json(stored: JsonValue) -> McpToolDefinition:
    definition = cast("dict[str, Any]", stored)
    return McpToolDefinition(
        name=definition["name"],
        description=definition["description"],
        input_schema=definition["input_schema"],
        output_schema=definition["output_schema"],
        read_only_hint=definition["read_only_hint"],
        idempotent_hint=definition["idempotent_hint"],
        destructive_hint=definition["destructive_hint"],
        display=definition.get("display", {}),
    )
