"""HTTP to authorization servers: egress guard, bounded redirects, size and time. Above: discovery,
registration, tokens. Below: `remote.py`."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast
from urllib.parse import urlencode, urlsplit

import aiohttp
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types.version import LATEST_MODERN_VERSION

from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient
from infrastructure.mcp.transports.server_contexts import ClientTls, ServerContexts

TIMEOUT_S = 15.0
_MAX_DOCUMENT = 256 * 1024
_ACCEPT = {"accept": "application/json", MCP_PROTOCOL_VERSION_HEADER: LATEST_MODERN_VERSION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response. `document` is None unless it is a JSON object; `challenges` are its
    WWW-Authenticate headers."""

    status: int
    document: JsonObject | None
    challenges: tuple[str, ...] = ()


class OAuthRequests:
    """One per process. Methods raise TransportFailedError without a response."""

    def __init__(self, *, remote: RemoteClient, timeout_s: float = TIMEOUT_S) -> None:
        self._remote = remote
        self._timeout_s = timeout_s
        self._origin: tuple[str, str] | None = None
        self._tls: ClientTls | None = None

    def through(self, tls: ClientTls | None, server_url: str) -> "OAuthRequests":
        """The same, with the certificates of an MCP server at its own origin."""
        if tls is None:
            return self
        through = OAuthRequests(remote=self._remote, timeout_s=self._timeout_s)
        through._origin, through._tls = _origin_of(server_url), tls
        return through

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self._request("GET", url, {**_ACCEPT, **(headers or {})})

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        sent = {**_ACCEPT, "content-type": "application/x-www-form-urlencoded", **headers}
        return await self._request("POST", url, sent, urlencode(form).encode())

    async def post_json(self, url: str, document: JsonObject, headers: Mapping[str, str] | None = None) -> Answer:
        sent = {**_ACCEPT, "content-type": "application/json", **(headers or {})}
        return await self._request("POST", url, sent, json.dumps(document).encode())

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        tls = self._tls if _origin_of(url) == self._origin else None
        endpoint = Endpoint(self._remote, url, {}, _MAX_DOCUMENT, tls=tls)
        try:
            async with asyncio.timeout(self._timeout_s), endpoint.request(method, headers, body) as response:
                return Answer(
                    status=response.status,
                    document=await _document(endpoint, response),
                    challenges=tuple(response.headers.getall("www-authenticate", [])),
                )
        except TimeoutError as exc:
            raise TransportFailedError(auth_fault(f"{_host(url)} does not answer in time.")) from exc
        except TransportFailedError as exc:
            if exc.fault.cause is not None:
                raise TransportFailedError(auth_fault(f"{_host(url)} cannot be reached: {exc.fault.cause}.")) from exc
            raise TransportFailedError(replace(exc.fault, over=True)) from exc


class ServerRequests:
    """Requests on behalf of one MCP server."""

    def __init__(self, *, requests: OAuthRequests, contexts: ServerContexts) -> None:
        self._requests = requests
        self._contexts = contexts

    async def of(self, server: McpServer) -> OAuthRequests:
        """Raises TransportFailedError for certificates that cannot be used."""
        assert server.config.url is not None
        return self._requests.through(await self._contexts.of(server), server.config.url)


def require_secure(url: str, server_url: str) -> None:
    """Reject an address with less protection than the MCP server's: behind TLS, only TLS is allowed
    (RFC 9700, section 2.6). Raises TransportFailedError."""
    if urlsplit(server_url).scheme == "https" and urlsplit(url).scheme != "https":
        raise TransportFailedError(auth_fault("An address of the authorization server is not protected by TLS."))


def _origin_of(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


async def _document(endpoint: Endpoint, response: aiohttp.ClientResponse) -> JsonObject | None:
    if "json" not in response.headers.get("content-type", ""):
        return None
    try:
        document = json.loads(await endpoint.read_body(response))
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, document) if isinstance(document, dict) else None


def _host(url: str) -> str:
    return f"The authorization server ({urlsplit(url).hostname})"
