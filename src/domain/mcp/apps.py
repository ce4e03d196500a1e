"""MCP Apps: user interfaces that servers offer for their tools (SEP-1865). Pure.

A tool links to a resource with the scheme `ui://`. The client renders the resource, which may then
call tools of its server through the client.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from domain.json_value import JsonObject

APPS_EXTENSION = "io.modelcontextprotocol/ui"
APP_TYPE = "text/html;profile=mcp-app"
UI_SCHEME = "ui://"
_FLAT_LINKS = ("ui/resourceUri", "openai/outputTemplate")
"""Older names of a tool's link, directly in `_meta`."""


class Audience(StrEnum):
    """Who may call a tool: the model of a host, and the apps of the tool's server."""

    MODEL = "model"
    APP = "app"


_EVERYBODY = frozenset(Audience)


def renders_apps(capabilities: JsonObject) -> bool:
    """Whether a client with these capabilities renders apps."""
    extensions = capabilities.get("extensions")
    declared = extensions.get(APPS_EXTENSION) if isinstance(extensions, dict) else None
    types = declared.get("mimeTypes") if isinstance(declared, dict) else None
    return isinstance(types, list) and APP_TYPE in types


def audience_of(meta: object) -> frozenset[Audience]:
    """Who may call the tool with this `_meta`: everybody, unless `ui.visibility` is a list."""
    ui = meta.get("ui") if isinstance(meta, dict) else None
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return frozenset(one for one in Audience if one in visibility) if isinstance(visibility, list) else _EVERYBODY


def links_in(meta: object) -> frozenset[str]:
    """The resources that render the results of the tool with this `_meta`."""
    found: set[str] = set()

    def noted(uri: str) -> str:
        found.add(uri)
        return uri

    if isinstance(meta, dict):
        with_links(meta, noted)
    return frozenset(found)


def with_links(meta: Mapping[str, object], changed: Callable[[str], str]) -> dict[str, object]:
    """`_meta` with other links. A link that is not `ui://` is removed: clients may read no other
    resource for a tool."""
    ui = meta.get("ui")
    whole = {**meta, "ui": _linked(ui, ("resourceUri",), changed)} if isinstance(ui, dict) else meta
    return _linked(whole, _FLAT_LINKS, changed)


def _linked(meta: Mapping[str, object], keys: tuple[str, ...], changed: Callable[[str], str]) -> dict[str, object]:
    linked = {key: value for key, value in meta.items() if key not in keys}
    for key in keys:
        uri = meta.get(key)
        if isinstance(uri, str) and uri.startswith(UI_SCHEME):
            linked[key] = changed(uri)
    return linked
