"""What the command line asks of an identity provider: metadata, tokens by a device code, a code or
a refresh token."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from interfaces.cli.failures import CommandFailure

T = TypeVar("T")

TIMEOUT_S = 20.0
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SignInRefused(CommandFailure):
    """The identity provider gave no tokens. `code` is the error of RFC 6749 or RFC 8628."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class CliProvider:
    """An identity provider as the service names it."""

    name: str
    issuer: str
    client_id: str
    scopes: tuple[str, ...]

    @property
    def scope(self) -> str:
        """The scopes, with the one for a refresh token (OpenID Connect Core 1.0, section 11)."""
        return " ".join(dict.fromkeys([*self.scopes, "offline_access"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Endpoints in an issuer's metadata."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    device_authorization_endpoint: str | None = None
    revocation_endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    id_token: str = field(repr=False)
    expires_at: float
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """RFC 8628, section 3.2."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None = None
    expires_in: float = 600.0
    interval: float = 5.0


class _Answer(msgspec.Struct):
    id_token: str | None = None
    refresh_token: str | None = None
    error: str | None = None


class _Claims(msgspec.Struct):
    exp: float


class ProviderClient:
    """Requests to identity providers. Each raises CommandFailure for one that does not answer as it
    should."""

    def __init__(self, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport

    async def endpoints(self, issuer: str) -> Endpoints:
        """Endpoints from the issuer's metadata, with the protection of TLS unless the issuer is on
        this machine."""
        content = await self._send("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration", issuer)
        found = _decoded(content.content, Endpoints, issuer) if content.is_success else None
        if found is None or found.issuer != issuer:
            raise _wrong(issuer, "has no metadata of OpenID Connect")
        for url in (
            found.authorization_endpoint,
            found.token_endpoint,
            found.device_authorization_endpoint,
            found.revocation_endpoint,
        ):
            if url is not None:
                _require_protected(url, issuer)
        return found

    async def device_code(self, provider: CliProvider, endpoint: str) -> DeviceCode:
        form = {"client_id": provider.client_id, "scope": provider.scope}
        response = await self._send("POST", endpoint, provider.issuer, form)
        if not response.is_success:
            answer = _decoded(response.content, _Answer, provider.issuer)
            raise SignInRefused(answer.error or "", f"{_host(provider.issuer)} starts no sign-in ({answer.error}).")
        return _decoded(response.content, DeviceCode, provider.issuer)

    async def tokens(self, endpoints: Endpoints, form: Mapping[str, str], *, former: str | None = None) -> Tokens:
        """Tokens for a grant. `former` is the refresh token so far, which stays if the answer has
        none. Raises SignInRefused."""
        response = await self._send("POST", endpoints.token_endpoint, endpoints.issuer, form)
        answer = _decoded(response.content, _Answer, endpoints.issuer)
        if not response.is_success or answer.id_token is None:
            code = answer.error or "no_id_token"
            raise SignInRefused(code, f"{_host(endpoints.issuer)} gave no tokens ({code}).")
        return Tokens(
            id_token=answer.id_token,
            expires_at=_expiry(answer.id_token, endpoints.issuer),
            refresh_token=answer.refresh_token or former,
        )

    async def revoke(self, endpoints: Endpoints, client_id: str, refresh_token: str) -> bool:
        """End the sign-in at the provider (RFC 7009). False where it has no endpoint for it, or
        refuses."""
        if endpoints.revocation_endpoint is None:
            return False
        form = {"token": refresh_token, "token_type_hint": "refresh_token", "client_id": client_id}
        response = await self._send("POST", endpoints.revocation_endpoint, endpoints.issuer, form)
        return response.is_success

    async def _send(self, method: str, url: str, issuer: str, form: Mapping[str, str] | None = None) -> httpx.Response:
        _require_protected(url, issuer)
        try:
            # Loading CA certificates takes longer than a request without TLS.
            secure = url.startswith("https:")
            async with httpx.AsyncClient(transport=self._transport, timeout=TIMEOUT_S, verify=secure) as http:
                return await http.request(method, url, data=form, headers={"Accept": "application/json"})
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise _wrong(issuer, "cannot be reached") from exc


def _require_protected(url: str, issuer: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise _wrong(issuer, "names an address without TLS")


def _decoded(content: bytes, kind: type[T], issuer: str) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise _wrong(issuer, "sent an answer that is not understood") from exc


def _expiry(token: str, issuer: str) -> float:
    """When the token expires. The service verifies it; here only its time is read."""
    try:
        payload = token.split(".")[1]
        claims = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    except (IndexError, ValueError) as exc:
        raise _wrong(issuer, "sent an answer that is not understood") from exc
    return _decoded(claims, _Claims, issuer).exp


def _host(issuer: str) -> str:
    return urlsplit(issuer).netloc


def _wrong(issuer: str, what: str) -> CommandFailure:
    return CommandFailure(f"The identity provider {_host(issuer)} {what}.")
