"""The two generations of MCP, how to detect them, and their formats.

- Legacy (until 2025-11-25): a client starts with a handshake (`initialize`) and may keep a session.
- Modern (from 2026-07-28): every request is self-contained and describes itself in `_meta` and
  headers (MCP basic/transports, streamable HTTP).
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from domain.gateway.client import GatewayClient
from domain.json_value import JsonObject
from interfaces.gateway.messages import INVALID_PARAMS, RpcError, RpcMessage

LEGACY_VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
ASSUMED_VERSION = "2025-03-26"
"""The version of requests that name none after the handshake (MCP 2025-06-18, transports)."""

VERSION_META = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_PREFIX = "mcp-param-"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
_SHOWN = 64
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_NO_PARAMS: Mapping[str, str | None] = MappingProxyType({})
_ROUTING = frozenset({VERSION_HEADER, METHOD_HEADER, NAME_HEADER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A request's description of itself: its version, and its client's capabilities.

    `client` is the legacy client, if the request names it. `param_headers` repeat arguments of a
    call, by lower-case name; None for a value that cannot be decoded.
    """

    version: str
    capabilities: JsonObject
    client: GatewayClient | None = None
    param_headers: Mapping[str, str | None] = field(default_factory=dict)

    is_modern: bool = field(init=False)
    """Whether the request is of the modern generation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_modern", self.version in MODERN_VERSIONS)


def speaks_modern(headers: Mapping[str, str], message: RpcMessage) -> bool:
    """Whether a request is modern: it names a version in its envelope, or a modern one in its
    header."""
    return VERSION_META in message.meta or headers.get(VERSION_HEADER) in MODERN_VERSIONS


def modern_envelope(headers: Mapping[str, str], message: RpcMessage, duplicated: frozenset[str]) -> Envelope:
    """The envelope of a modern request. Everything is stated twice: in the body, and in headers for
    routing proxies. Raises RpcError if they differ, or if the version is not supported."""
    if duplicated:
        twice = [name for name in duplicated if name in _ROUTING or name.startswith(PARAM_PREFIX)]
        if twice:
            raise _mismatch(f"The header {min(twice)} was sent more than once.")
    meta = message.meta
    if VERSION_META not in meta or CAPABILITIES_META not in meta:
        missing = [key for key in (VERSION_META, CAPABILITIES_META) if key not in meta]
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.", status=400)
    version, capabilities = meta[VERSION_META], meta[CAPABILITIES_META]
    if version is None or headers.get(VERSION_HEADER) != version:
        raise _mismatch("The header MCP-Protocol-Version differs from the version in the body.")
    if headers.get(METHOD_HEADER) != message.method:
        raise _mismatch("The header Mcp-Method differs from the method in the body.")
    named_by = _NAMED_BY.get(message.method)
    named = None if named_by is None else message.params.get(named_by)
    if named is not None and header_value(headers.get(NAME_HEADER)) != named:
        raise _mismatch(f"The header Mcp-Name differs from the {named_by} in the body.")
    # Clients also name the task (extension io.modelcontextprotocol/tasks); those without the
    # extension do not.
    of_task = headers.get(NAME_HEADER) if message.method in _TASK_METHODS else None
    if of_task is not None and header_value(of_task) != message.params.get("taskId"):
        raise _mismatch("The header Mcp-Name differs from the taskId in the body.")
    if version not in MODERN_VERSIONS:
        raise unsupported_version(str(version))
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"{CAPABILITIES_META} must be an object.", status=400)
    return Envelope(
        version=str(version),
        capabilities=capabilities,
        param_headers=_param_headers(headers),
    )


def _param_headers(headers: Mapping[str, str]) -> Mapping[str, str | None]:
    if PARAM_PREFIX not in "\n".join(headers):  # as in most requests; looked up in one step
        return _NO_PARAMS
    return {name: header_value(headers[name]) for name in headers if name.startswith(PARAM_PREFIX)}


def unsupported_version(requested: str) -> RpcError:
    """The error for an unsupported version, with the supported ones (MCP 2026-07-28,
    basic/versioning)."""
    data: JsonObject = {"supported": list(MODERN_VERSIONS), "requested": requested[:_SHOWN]}
    return RpcError(UNSUPPORTED_VERSION, "The protocol version is not supported.", data=data, status=400)


def legacy_version(headers: Mapping[str, str]) -> str:
    """The version of a request after the handshake. Raises RpcError for an unsupported one."""
    version = headers.get(VERSION_HEADER, ASSUMED_VERSION)
    if version not in LEGACY_VERSIONS:
        raise unsupported_version(version)
    return version


def negotiated(requested: object) -> str:
    """The version for a handshake: the client's, if supported, otherwise the newest legacy one."""
    return requested if isinstance(requested, str) and requested in LEGACY_VERSIONS else LEGACY_VERSIONS[-1]


def header_value(value: str | None) -> str | None:
    """A header's text, which may be wrapped in base64; None if it cannot be decoded."""
    wrapped = None if value is None else _ENCODED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        plain = base64.b64decode(wrapped[1], validate=True)
        return plain.decode() if base64.b64encode(plain).decode() == wrapped[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _mismatch(message: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, message, status=400)
