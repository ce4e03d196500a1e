"""MCP servers in the registry's format, `server.json` (MCP registry API v0.1; schema 2025-12-11).
Pure."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from domain.json_value import JsonObject, JsonValue
from domain.mcp.auth import header_of
from domain.mcp.images import oci_image
from domain.mcp.packages import npm_package, python_package
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from domain.secrets.names import references_in, without_references
from domain.threads.message_json import timestamp

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
OFFICIAL_META = "io.modelcontextprotocol.registry/official"
LOCAL = "local.dragoman"
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,99}")


def namespace_of(url: str | None) -> str:
    """The service's host name, reversed: the part of the names before the slash."""
    host = urlsplit(url or "").hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return ".".join(reversed(host.split("."))) if "." in host else LOCAL
    return LOCAL


def server_json(server: McpServer, namespace: str) -> JsonObject | None:
    """The entry of a server. None for one that only this machine can start: it runs from a file or
    command here. Secrets appear as inputs without values."""
    config = server.config
    remotes = _remotes(config)
    packages = [] if remotes else _packages(server)
    if not remotes and not packages:
        return None
    entry: JsonObject = {
        "$schema": SCHEMA,
        "name": f"{namespace}/{config.slug}",
        "title": config.slug,
        "description": f"MCP server {config.slug} of this organization",
        "version": version_of(server),
        **({"remotes": remotes} if remotes else {"packages": packages}),
    }
    meta: JsonObject = {
        "status": "active",
        "statusChangedAt": timestamp(server.created_at),
        "publishedAt": timestamp(server.created_at),
        "updatedAt": timestamp(server.updated_at),
        "isLatest": True,
    }
    return {"server": entry, "_meta": {OFFICIAL_META: meta}}


def version_of(server: McpServer) -> str:
    """The version of its package where it is known, otherwise by the number of its changes."""
    return _package_version(server) or f"1.0.{server.version}"


def _package_version(server: McpServer) -> str | None:
    installed = None if server.installation is None else server.installation.version
    wanted = installed or server.config.version
    return wanted if wanted is not None and _VERSION.fullmatch(wanted) else None


def _remotes(config: McpServerConfig) -> list[JsonValue]:
    if not config.kind.is_remote or config.kind is McpServerKind.A2A or config.url is None:
        return []
    names = [*config.headers, *([] if config.auth is None else [header_of(config.auth)])]
    remote: JsonObject = {
        "type": "sse" if config.kind is McpServerKind.SSE else "streamable-http",
        "url": config.url,
        **({"headers": _inputs(names)} if names else {}),
    }
    if secrets := references_in(config.url):
        remote["url"] = without_references(config.url, [f"{{{name}}}" for name in secrets])
        remote["variables"] = {name: {"isRequired": True, "isSecret": True} for name in secrets}
    return [remote]


def _packages(server: McpServer) -> list[JsonValue]:
    config, version = server.config, _package_version(server)
    package = config.package or ""
    match config.kind:
        case McpServerKind.NPM:
            kind, identifier = "npm", npm_package(package, config.version).name
        case McpServerKind.PYTHON:
            kind, identifier = "pypi", python_package(package, config.version).name
        case McpServerKind.OCI:
            kind, identifier, version = "oci", oci_image(package, config.version).reference, None
        case _:
            return []
    if identifier is None:
        return []
    found: JsonObject = {"registryType": kind, "identifier": identifier, "transport": {"type": "stdio"}}
    if version is not None:
        found["version"] = version
    if config.args:
        found["packageArguments"] = [{"type": "positional", "value": value} for value in config.args]
    if config.env:
        found["environmentVariables"] = _inputs([*config.env])
    return [found]


def _inputs(names: list[str]) -> list[JsonValue]:
    return [{"name": name, "isRequired": True, "isSecret": True} for name in names]
