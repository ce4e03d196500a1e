"""Negotiates the generation of MCP: first modern, then the handshake of legacy versions (MCP
2026-07-28, basic/versioning). Only evidence of the other generation decides: no answer over HTTP,
or rejected credentials, ends the attempt."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
    Implementation,
    InitializeResult,
    ServerCapabilities,
    UnsupportedProtocolVersionErrorData,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from application.mcp.ports import McpFailureKind
from domain.mcp.apps import APP_TYPE, APPS_EXTENSION
from domain.mcp.catalog import NO_VERSION
from domain.mcp.server import McpServerConfig, McpServerKind
from infrastructure.mcp.faults import fault_in

PROBE_TIMEOUT_S = 10.0
CAPABILITIES: Mapping[str, Any] = {"extensions": {APPS_EXTENSION: {"mimeTypes": [APP_TYPE]}}}
"""What is declared to every server: clients of the gateway may render apps."""

Negotiate = Callable[[ClientSession], Awaitable[None]]


def negotiation_with(config: McpServerConfig, usual: Negotiate) -> Negotiate:
    """How a connection to the server is negotiated."""
    if config.answers_calls_only:
        return skip_handshake
    return negotiate_handshake if config.kind in (McpServerKind.SSE, McpServerKind.A2A) else usual


async def negotiate_any(session: ClientSession) -> None:
    """Negotiate the newest version that both sides support. The caller bounds the time. Raises:
    MCPError (refusal by the server, or transport failure), RuntimeError (no common version),
    ValidationError (the answer to the handshake is not MCP)."""
    if await _probe(session, LATEST_MODERN_VERSION):
        return
    try:
        await session.initialize()
    except MCPError as exc:
        # A slow server may have taken the late probe as the choice of generation; the error then
        # lists its versions.
        version = _mutual_modern(exc)
        if version is None or not await _probe(session, version, is_last=True):
            raise


async def negotiate_handshake(session: ClientSession) -> None:
    """Negotiate by the handshake of all versions before 2026-07-28. Raises as `negotiate_any`."""
    await session.initialize()


async def skip_handshake(session: ClientSession) -> None:
    """Send nothing: the server answers calls only, so no version is agreed on."""
    session.adopt(
        InitializeResult(
            protocol_version=NO_VERSION,
            capabilities=ServerCapabilities(),
            server_info=Implementation(name="", version=""),
        )
    )


async def _probe(session: ClientSession, version: str, *, is_last: bool = False) -> bool:
    """Whether the server is modern; False leaves the decision to the handshake. Unless `is_last`, a
    version offered by the server is tried."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            raw = await session.send_discover(version)
    except TimeoutError:
        return False
    except MCPError as exc:
        if _says_nothing(exc):
            raise
        other = _mutual_modern(exc)
        if other is not None and not is_last:
            return await _probe(session, other, is_last=True)
        if exc.code == UNSUPPORTED_PROTOCOL_VERSION and not _offers_handshake(exc):
            raise
        return False
    try:
        result = DiscoverResult.model_validate(raw)
    except ValidationError:
        return False
    if not set(result.supported_versions) & set(MODERN_PROTOCOL_VERSIONS):
        return False
    session.adopt(result)
    return True


def _says_nothing(error: MCPError) -> bool:
    fault = fault_in(error)
    return fault is not None and (fault.needs_auth or (fault.over and fault.kind is McpFailureKind.NOT_CONNECTED))


def _supported(error: MCPError) -> list[str] | None:
    if error.code != UNSUPPORTED_PROTOCOL_VERSION:
        return None
    try:
        return UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
    except ValidationError:
        return None


def _mutual_modern(error: MCPError) -> str | None:
    supported = _supported(error) or []
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in supported), None)


def _offers_handshake(error: MCPError) -> bool:
    supported = _supported(error)
    return supported is None or any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in supported)
