"""Finds the authorization server of an MCP server: protected resource metadata (RFC 9728), then
authorization server metadata (RFC 8414, OpenID Connect Discovery), in the order of MCP 2025-11-25,
basic/authorization."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from mcp.shared.inbound import MCP_METHOD_HEADER
from mcp.types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp.types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from domain.json_value import JsonObject
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.oauth.challenge import Challenge, read_challenge
from infrastructure.mcp.oauth.requests import OAuthRequests, require_secure

_OK = 200
_UNAUTHORIZED = 401
_FIRST_SERVER_ERROR = 500
_PROBE_METHOD = "tools/list"
_PROBE: JsonObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": _PROBE_METHOD,
    "params": {"_meta": {PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, CLIENT_CAPABILITIES_META_KEY: {}}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """An authorization server. `resource` identifies the MCP server (RFC 8707); `scopes` are those
    the MCP server lists, None without a list."""

    issuer: str
    metadata: OAuthMetadata
    resource: str
    scopes: tuple[str, ...] | None


class Discovery:
    def __init__(self, *, requests: OAuthRequests) -> None:
        self._requests = requests

    async def find(self, server_url: str, challenge: Challenge, issuer: str | None) -> FoundServer:
        """The authorization server with the given `issuer`, else the first one named. Raises
        TransportFailedError with the reason."""
        resource = resource_url_from_server_url(server_url)
        protected = await self._protected_resource(server_url, challenge)
        if protected is None:
            expected = issuer or _origin(server_url)
            metadata = await self._metadata(issuer, expected, server_url)
            return FoundServer(issuer=str(metadata.issuer), metadata=metadata, resource=resource, scopes=None)
        if not check_resource_allowed(resource, str(protected.resource)):
            raise TransportFailedError(auth_fault("The server's metadata is about another resource than the server."))
        expected = _chosen([str(named) for named in protected.authorization_servers], issuer)
        metadata = await self._metadata(expected, expected, server_url)
        scopes = protected.scopes_supported
        return FoundServer(
            issuer=str(metadata.issuer),
            metadata=metadata,
            resource=str(protected.resource),
            scopes=None if scopes is None else tuple(scopes),
        )

    async def of_issuer(self, issuer: str) -> OAuthMetadata:
        """The metadata of an authorization server that the configuration names, not a server.
        Raises TransportFailedError."""
        return await self._metadata(issuer, issuer, issuer)

    async def challenge(self, server_url: str) -> Challenge | None:
        """The server's challenge to a request without credentials, if any. The first request lists
        tools, because many servers accept handshakes without credentials; the second one opens an
        event stream, for legacy servers."""
        headers = {"accept": "application/json, text/event-stream"}
        answer = await self._requests.post_json(server_url, _PROBE, {**headers, MCP_METHOD_HEADER: _PROBE_METHOD})
        if answer.status != _UNAUTHORIZED:
            answer = await self._requests.get(server_url, headers)
        return read_challenge(answer.challenges) if answer.status == _UNAUTHORIZED else None

    async def _protected_resource(self, server_url: str, challenge: Challenge) -> ProtectedResourceMetadata | None:
        for url in build_protected_resource_metadata_discovery_urls(challenge.resource_metadata, server_url):
            require_secure(url, server_url)
            answer = await self._requests.get(url)
            if answer.status == _OK and answer.document is not None:
                try:
                    return ProtectedResourceMetadata.model_validate(answer.document)
                except ValidationError:
                    continue
        return None

    async def _metadata(self, issuer: str | None, expected: str, server_url: str) -> OAuthMetadata:
        for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
            require_secure(url, server_url)
            answer = await self._requests.get(url)
            if answer.status >= _FIRST_SERVER_ERROR:
                detail = f"The authorization server's metadata cannot be read (HTTP status {answer.status})."
                raise TransportFailedError(auth_fault(detail))
            if answer.status != _OK or answer.document is None:
                continue
            try:
                metadata = OAuthMetadata.model_validate(answer.document)
            except ValidationError:
                continue
            _check(metadata, expected, server_url)
            return metadata
        raise TransportFailedError(
            auth_fault("The server requires authorization, but its authorization server has no metadata.")
        )


def _chosen(named: list[str], issuer: str | None) -> str:
    if issuer is None:
        return named[0]
    for candidate in named:
        if issuers_match(candidate, issuer):
            return candidate
    raise TransportFailedError(auth_fault("The server does not name the authorization server that auth.issuer fixes."))


def _check(metadata: OAuthMetadata, expected: str, server_url: str) -> None:
    """RFC 8414, section 3.3: reject metadata of another issuer."""
    if not issuers_match(str(metadata.issuer), expected):
        raise TransportFailedError(auth_fault("The authorization server's metadata is about another issuer."))
    for endpoint in (metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint):
        if endpoint is not None:
            require_secure(str(endpoint), server_url)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
