"""Fetches pages that models name, through the egress guard, with checked redirects and bounded
size.

Above: `website_content.py`. Below: an HTTP client whose resolver vets addresses and connects to
exactly those (no DNS rebinding).
"""

import re
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http import HTTPStatus

import httpx
from aiohttp.abc import AbstractResolver

from application.tools.ports import NativeToolError
from infrastructure.extraction.media_types import document_kind
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.sessions import causes_of, refusal_in

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "unknown/unknown"})
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_CHUNK_BYTES = 64 * 1024
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")
_SNIFFED_BYTES = 16 * 1024
"""How much of a document is examined to detect its type."""
_HTML_START = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """A fetched document. `url` is the address after redirects; `media_type` is a readable type,
    with its charset if stated."""

    url: str
    media_type: str
    data: bytes


class PageFetcher:
    """One client for all pages: no cookies, no credentials, and every redirect is checked."""

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        user_agent: str,
        resolver: AbstractResolver | None = None,
        max_bytes: int = 10 * 1024 * 1024,
        http: HttpClients | None = None,
    ) -> None:
        self._egress = egress
        self._user_agent = user_agent
        self._resolver = resolver
        self._max_bytes = max_bytes
        self._http = http or HttpClients()
        self._client: httpx.AsyncClient | None = None

    async def fetch(self, url: str) -> FetchedPage:
        """The document at `url`. Raises NativeToolError `website_…`. The caller bounds the time."""
        address = _parsed(url)
        seen = {address}
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._request(address)
            if isinstance(found, FetchedPage):
                return found
            if found in seen:
                raise NativeToolError("website_redirect_loop", "The website redirects in a circle.")
            seen.add(found)
            address = found
        raise NativeToolError("website_redirect_loop", f"The website redirects more than {MAX_REDIRECTS} times.")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _request(self, address: httpx.URL) -> FetchedPage | httpx.URL:
        """The document, or the target of a redirect."""
        try:
            self._egress.check(str(address))
            request = self._opened().build_request("GET", address, headers=self._headers())
            response = await self._opened().send(request, stream=True)
            try:
                return await self._answer(address, response)
            finally:
                await response.aclose()
        except EgressBlockedError as blocked:
            raise NativeToolError("website_blocked", blocked.reason) from blocked
        except httpx.HTTPError as error:
            raise _failure(address.host, error) from error

    async def _answer(self, address: httpx.URL, response: httpx.Response) -> FetchedPage | httpx.URL:
        if response.status_code in _REDIRECTS and "location" in response.headers:
            return _parsed(response.headers["location"], address)
        if response.status_code != HTTPStatus.OK:
            raise NativeToolError(
                "website_http_error", f"The website answered HTTP {_described(response.status_code)}."
            )
        stated = response.headers.get("content-type", "")
        essence = stated.partition(";")[0].strip().lower()
        if essence not in _UNKNOWN_TYPES and document_kind(essence) is None:
            raise _no_text(essence)
        announced = response.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            raise self._too_large()
        data = await self._body(response)
        return FetchedPage(
            url=str(address), media_type=_sniffed(data) if essence in _UNKNOWN_TYPES else stated, data=data
        )

    async def _body(self, response: httpx.Response) -> bytes:
        """The whole body, decompressed. Decompression stops at the size limit."""
        body = bytearray()
        async for part in _unpacked(response):
            body += part
            if len(body) > self._max_bytes:
                raise self._too_large()
        return bytes(body)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._http.create(
                egress=self._egress,
                resolver=self._resolver,
                read_timeout_s=20.0,
                max_connections=100,
                keepalive_s=5,
            )
        return self._client

    def _headers(self) -> dict[str, str]:
        return {
            "user-agent": self._user_agent,
            "accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,*/*;q=0.5",
            "accept-encoding": "gzip",
        }

    def _too_large(self) -> NativeToolError:
        megabytes = self._max_bytes / (1024 * 1024)
        return NativeToolError("website_too_large", f"The document is larger than {megabytes:g} MiB and was not read.")


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        async for chunk in response.aiter_raw():
            yield chunk
    elif encoding in {"gzip", "x-gzip"}:
        inflating = zlib.decompressobj(_GZIP_WINDOW)
        try:
            async for chunk in response.aiter_raw():
                for part in _inflated(inflating, chunk):
                    yield part
        except zlib.error as error:
            raise NativeToolError("website_broken", "The website's answer is damaged.") from error
    else:
        raise NativeToolError("website_broken", "The website's answer has an unsupported compression.")


def _inflated(inflating: "zlib._Decompress", chunk: bytes) -> Iterator[bytes]:
    """Decompress in parts, because a few kilobytes may expand to gigabytes."""
    while chunk and not inflating.eof:
        yield inflating.decompress(chunk, _CHUNK_BYTES)
        chunk = inflating.unconsumed_tail


def _parsed(url: str, seen_from: httpx.URL | None = None) -> httpx.URL:
    try:
        address = httpx.URL(url.strip())
        if seen_from is not None:
            address = seen_from.join(address)
        return address.copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        if seen_from is not None:
            raise NativeToolError("website_broken", "The website redirects to a URL that is not valid.") from error
        raise NativeToolError("website_invalid_url", "The URL is not valid.") from error


def _sniffed(data: bytes) -> str:
    """The type of a document without a stated type. Raises NativeToolError if it is not text."""
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    if b"\0" in data:
        raise _no_text("binary data")
    return "text/html" if _HTML_START.match(data[:_SNIFFED_BYTES]) else "text/plain"


def _no_text(kind: str) -> NativeToolError:
    named = kind if _MEDIA_TYPE.fullmatch(kind) or kind == "binary data" else "something else"
    return NativeToolError("website_no_text", f"The URL leads to {named}, which has no text that can be read.")


def _failure(host: str, error: httpx.HTTPError) -> NativeToolError:
    """Why there is no answer, in our own words. Resolved addresses are not revealed."""
    if (blocked := refusal_in(error)) is not None:
        return NativeToolError("website_blocked", blocked.reason)
    if any(isinstance(cause, ssl.SSLError) for cause in causes_of(error)):
        return NativeToolError(
            "website_unreachable", f"The connection to {host} is not secure; its certificate may be wrong."
        )
    if isinstance(error, httpx.TimeoutException):
        return NativeToolError("website_timeout", f"{host} did not answer in time.")
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        return NativeToolError("website_unreachable", f"There is no host {host}, or it does not accept connections.")
    return NativeToolError("website_broken", f"{host} broke off its answer, or does not speak HTTP.")


def _described(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
