"""MCP servers and catalogs to rows and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from domain.ids import McpServerId, OrganizationId
from domain.mcp.auth import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BearerAuth,
    ClientCredentialsAuth,
    IdJagAuth,
    ServerAuth,
    TokenExchangeAuth,
)
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection
from domain.mcp.installation import Installation
from domain.mcp.pinning import PinnedTool
from domain.mcp.server import McpServer, McpServerConfig
from infrastructure.persistence.columns.fields import json_fields, tagged
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.runtime.json_text import decode, encode

_FIRST = "first_position"
_SECRET = ("env", "headers", "auth", "tls")
_AUTH = {
    ServerAuth: tagged(
        bearer=BearerAuth,
        api_key=ApiKeyAuth,
        oauth_client_credentials=ClientCredentialsAuth,
        oauth_authorization_code=AuthorizationCodeAuth,
        oauth_token_exchange=TokenExchangeAuth,
        oauth_id_jag=IdJagAuth,
    )
}
_config = json_fields(McpServerConfig, without=_SECRET)
_secrets = json_fields(McpServerConfig, only=_SECRET, codecs=_AUTH)
_description = json_fields(McpCatalog, only=("protocol_version", "server_name", "instructions", "skipped"))
_definition = json_fields(McpToolDefinition)
_rejection = json_fields(Rejection)


def server_row(server: McpServer, box: SecretBox) -> dict[str, object]:
    config, installation = server.config, server.installation
    return {
        "id": server.id,
        "organization_id": server.organization_id,
        "created_at": server.created_at,
        "slug": config.slug,
        "team": config.team,
        "version": server.version,
        # The names of its secrets are stored unencrypted, so that a used secret is found.
        "config": {**_config.write(config), "secrets": [*config.secret_names]},
        "secrets": box.encrypt(encode(_secrets.write(config)).encode()),
        "updated_at": server.updated_at,
        "installed_version": installation.version if installation else None,
        "installed_location": installation.location if installation else None,
        "installed_at": installation.installed_at if installation else None,
        "installed_lock": installation.lock if installation else None,
    }


def server_of(row: AnyRow, box: SecretBox) -> McpServer:
    return McpServer(
        id=McpServerId(row.id),
        organization_id=OrganizationId(row.organization_id),
        version=row.version,
        config=_config.read(row.config, **_secrets.values(decode(box.decrypt(row.secrets).decode()))),
        created_at=row.created_at,
        updated_at=row.updated_at,
        installation=_installation_of(row),
    )


def _installation_of(row: AnyRow) -> Installation | None:
    if row.installed_location is None:
        return None
    return Installation(
        version=row.installed_version,
        location=row.installed_location,
        installed_at=row.installed_at,
        lock=row.installed_lock,
    )


LIST_RANGE = 1_000_000
"""Positions of a list; it has fewer rows."""


def state_row(organization_id: OrganizationId, catalog: McpCatalog, *, first_position: int) -> dict[str, object]:
    """The rows of the list begin at `first_position`."""
    return {
        "server_id": catalog.server_id,
        "organization_id": organization_id,
        "server_version": catalog.server_version,
        "description": moved(_description.write(catalog), first_position),
        "taken_at": catalog.taken_at,
        "revision": catalog.revision + 1,
    }


def first_position_of(description: Mapping[str, Any] | None) -> int:
    """Where the list begins that has this description."""
    return 0 if description is None else int(description.get(_FIRST, 0))


def moved(description: Mapping[str, Any], first_position: int) -> dict[str, object]:
    """The description of a list that begins there."""
    return {**description, _FIRST: first_position} if first_position else dict(description)


NEW, CHANGED, DORMANT = "new", "changed", "dormant"
"""Standings of tools other than approved and listed."""


def definition_rows(
    organization_id: OrganizationId, catalog: McpCatalog, *, first_position: int = 0
) -> Iterator[dict[str, object]]:
    """One row for each tool and each dormant definition, with JSON as text."""

    def row(position: int, tool: McpToolDefinition) -> dict[str, object]:
        standing = former = rejection = None
        if position >= len(catalog.tools):
            standing = DORMANT
        elif tool.name in catalog.quarantined:
            former = catalog.quarantined[tool.name]
            standing = NEW if former is None else CHANGED
            rejection = catalog.rejected.get(tool.name)
        return {
            "server_id": catalog.server_id,
            "position": first_position + position,
            "organization_id": organization_id,
            "name": tool.name,
            "definition_json": _text_of(tool),
            "standing": standing,
            "approved_json": None if former is None else _text_of(former),
            "rejection_json": None if rejection is None else text_of_rejection(rejection),
        }

    return (row(position, tool) for position, tool in enumerate((*catalog.tools, *catalog.dormant)))


def text_of_rejection(rejection: Rejection) -> str:
    return encode(_rejection.write(rejection))


def _text_of(tool: McpToolDefinition) -> str:
    return encode({**_definition.write(tool), "digest": tool.digest})


def pinned_tool_of(row: AnyRow) -> PinnedTool:
    """From a row of `mcp_tool_definition`, with JSON as text. The definition of a dormant one is
    approved."""
    definition = _definition_of(row.definition)
    if row.standing in (None, DORMANT):
        return PinnedTool(definition=definition, approved=definition)
    former = None if row.approved_definition is None else _definition_of(row.approved_definition)
    rejection = None if row.rejection is None else _rejection.read(decode(row.rejection))
    return PinnedTool(definition=definition, approved=former, rejection=rejection)


def _definition_of(text: str) -> McpToolDefinition:
    stored = cast(dict[str, object], decode(text))
    definition = _definition.read({"pin_version": 1, **stored})  # rows of earlier releases have none
    digest = stored.get("digest")
    return definition.with_digest(digest) if isinstance(digest, str) else definition


def catalog_of(
    state: AnyRow,
    tools: Sequence[McpToolDefinition],
    quarantined: Mapping[str, McpToolDefinition | None],
    dormant: Sequence[McpToolDefinition],
    rejected: Mapping[str, Rejection],
) -> McpCatalog:
    """From a row of `mcp_server_state`, and what is in the ordered rows of its tools."""
    return McpCatalog(
        server_id=McpServerId(state.server_id),
        server_version=state.server_version,
        tools=tuple(tools),
        taken_at=state.taken_at,
        quarantined=quarantined,
        dormant=tuple(dormant),
        rejected=rejected,
        revision=state.revision,
        **_description.values(state.description),
    )
