"""Names of servers' resources and prompts for clients, policy and ledger. Pure.

Clients see resources as `mcp+SLUG:URI`; prompts are named as tools are. A session with original
names uses the server's names. Policy and ledger use one name for each kind, as if it were a tool
of the server: `mcp__SLUG__resources` and `mcp__SLUG__prompts`.
"""

from enum import StrEnum
from typing import cast

from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from domain.tools.names import model_facing_name


class ContentKind(StrEnum):
    """Kinds of content; the values are the fields of a listing."""

    RESOURCES = "resources"
    TEMPLATES = "resourceTemplates"
    PROMPTS = "prompts"


_NAMED_IN = {ContentKind.RESOURCES: "uri", ContentKind.TEMPLATES: "uriTemplate", ContentKind.PROMPTS: "name"}


def policy_name(slug: str, kind: ContentKind) -> str:
    """The name in policies and in the ledger."""
    return model_facing_name(slug, "prompts" if kind is ContentKind.PROMPTS else "resources")


def exposed(entry: JsonObject, slug: str, kind: ContentKind, names: ToolNames) -> JsonObject | None:
    """An entry of a server's listing under the client's name. None for an entry without a name."""
    key = _NAMED_IN[kind]
    name = entry.get(key)
    if not isinstance(name, str) or not name:
        return None
    if names is ToolNames.ORIGINAL:
        return entry
    shown = model_facing_name(slug, name) if kind is ContentKind.PROMPTS else exposed_uri(name, slug)
    return {**entry, key: shown}


def exposed_uri(uri: str, slug: str) -> str:
    """The client's form of a server's URI or URI template."""
    return f"mcp+{slug}:{uri}"


def with_exposed_uri(block: object, slug: str) -> object:
    """A content block with the URI by which the client can read the named resource."""
    match block:
        case {"type": "resource_link", "uri": str(uri)}:
            return {**cast("dict[str, object]", block), "uri": exposed_uri(uri, slug)}
        case {"type": "resource", "resource": {"uri": str(uri)} as resource}:
            return {**cast("dict[str, object]", block), "resource": {**resource, "uri": exposed_uri(uri, slug)}}
        case _:
            return block


def resolved_uri(uri: str, slug: str) -> str | None:
    """The server's form of a client's URI. None if it belongs to another server."""
    prefix = f"mcp+{slug}:"
    return uri.removeprefix(prefix) if uri.startswith(prefix) and len(uri) > len(prefix) else None
