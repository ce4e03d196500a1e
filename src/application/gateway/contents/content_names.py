"""Names of servers' resources and prompts for clients, policy and ledger. Pure.

Clients see resources as `mcp+SLUG:URI`, and `ui://PATH` as `ui://SLUG/PATH`; prompts are named as
tools are. A session with original names uses the server's names. Policy and ledger use one name for
each kind, as if it were a tool of the server: `mcp__SLUG__resources` and `mcp__SLUG__prompts`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import cast

from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from domain.mcp.apps import UI_SCHEME, with_links
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
    """The client's form of a server's URI or URI template. Hosts of apps require the scheme
    `ui://`."""
    if uri.startswith(UI_SCHEME):
        return f"{UI_SCHEME}{slug}/{uri.removeprefix(UI_SCHEME)}"
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


def with_exposed_links(meta: Mapping[str, object], slug: str | None) -> dict[str, object]:
    """The `_meta` of a tool or a result with the URIs by which the client can read the server's
    apps.
    Without a slug the client knows the server's own URIs."""
    return with_links(meta, lambda uri: uri if slug is None else exposed_uri(uri, slug))


def resolved_uri(uri: str, slug: str) -> str | None:
    """The server's form of a client's URI. None if it belongs to another server."""
    for prefix, scheme in ((f"mcp+{slug}:", ""), (f"{UI_SCHEME}{slug}/", UI_SCHEME)):
        if uri.startswith(prefix) and len(uri) > len(prefix):
            return scheme + uri.removeprefix(prefix)
    return None
