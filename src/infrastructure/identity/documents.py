"""Documents of identity providers, over the guarded HTTP client: bounded in size and time, no
redirects."""

import base64
import json
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlencode, urlsplit

from application.identity.admit_person import refused
from application.identity.ports import ProviderMetadata, SignInTokens
from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.shared_work import SharedWork
from application.workflows.http_request import HttpAnswer, HttpCall, HttpCaller, HttpCallFailed
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import IdentityProvider
from domain.json_value import JsonObject, JsonValue

TIMEOUT_S = 10.0
MAX_DOCUMENT = 256 * 1024
FRESH_S = 3600.0
RETRY_S = 5.0
"""How long a failed read is not repeated."""
MAX_KNOWN = 200
FAMILIES = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
"""Asymmetric algorithms by type of key. A token's header never chooses another."""
_OK, _FIRST_SERVER_ERROR = 200, 500
_DAY_S = 86_400
_WELL_KNOWN = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An issuer's metadata, or why there is none."""

    found: JsonObject | ServiceError
    valid_until: float


class IdentityProviderDocuments:
    """The `IdentityProviderClient` port. Metadata is cached for an hour, a failure to read it for
    `RETRY_S`."""

    def __init__(self, *, http: HttpCaller, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._known: LruCache[str, _Known] = LruCache(MAX_KNOWN)
        self._reading = SharedWork[str, _Known](name="identity-provider-metadata")

    async def metadata(self, provider: IdentityProvider) -> ProviderMetadata:
        document = await self._discovered(provider.issuer)
        return ProviderMetadata(
            issuer=provider.issuer,
            authorization_endpoint=_required(document, "authorization_endpoint", provider.issuer),
            token_endpoint=_required(document, "token_endpoint", provider.issuer),
            device_authorization_endpoint=_endpoint(document, "device_authorization_endpoint", provider.issuer),
            end_session_endpoint=_endpoint(document, "end_session_endpoint", provider.issuer),
            names_itself_in_answers=document.get("authorization_response_iss_parameter_supported") is True,
        )

    async def redeem(self, provider: IdentityProvider, code: str, *, redirect_uri: str, verifier: str) -> SignInTokens:
        document = await self._discovered(provider.issuer)
        endpoint = _required(document, "token_endpoint", provider.issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = [("content-type", "application/x-www-form-urlencoded")]
        methods = _texts(document.get("token_endpoint_auth_methods_supported"))
        if provider.client_secret is not None and (not methods or "client_secret_basic" in methods):
            headers.append(("authorization", _basic(provider.client_id, provider.client_secret)))
        else:
            form["client_id"] = provider.client_id
            if provider.client_secret is not None:
                form["client_secret"] = provider.client_secret
        answer = await self._send("POST", endpoint, headers=tuple(headers), body=urlencode(form).encode())
        if answer.status >= _FIRST_SERVER_ERROR:
            raise unavailable(endpoint, f"answered with HTTP status {answer.status}")
        given = _object(answer.text) if answer.status == _OK else {}
        token, access, lasts = (given.get(name) for name in ("id_token", "access_token", "expires_in"))
        if not isinstance(token, str):
            raise refused("The identity provider did not accept this sign-in. Begin it again.")
        return SignInTokens(
            id_token=token,
            access_token=access if isinstance(access, str) else None,
            access_token_lasts_s=min(lasts, _DAY_S) if isinstance(lasts, int) and lasts > 0 else None,
        )

    async def count_keys(self, provider: IdentityProvider) -> int:
        self._known.pop(provider.issuer)
        return sum(map(_verifies, await self.keys(provider.issuer)))

    async def keys(self, issuer: str) -> list[JsonObject]:
        """The issuer's JSON Web Keys, read now."""
        document = await self._discovered(issuer)
        keys = (await self._read(_required(document, "jwks_uri", issuer))).get("keys")
        return [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []

    async def _discovered(self, issuer: str) -> JsonObject:
        known = self._known.get(issuer)
        if known is None or known.valid_until <= self._clock.monotonic():
            # Many requests wait for one read: people who are not signed in cause them.
            known = await self._reading.result(issuer, partial(self._discover, issuer))
        if isinstance(known.found, ServiceError):
            raise known.found
        return known.found

    async def _discover(self, issuer: str) -> _Known:
        found: JsonObject | ServiceError
        try:
            found, valid_s = await self._read(issuer.rstrip("/") + _WELL_KNOWN), FRESH_S
            if found.get("issuer") != issuer:
                raise unavailable(issuer, "has metadata of another issuer")
        except ServiceError as error:
            found, valid_s = error, RETRY_S
        known = _Known(found=found, valid_until=self._clock.monotonic() + valid_s)
        self._known.put(issuer, known)
        return known

    async def _read(self, url: str) -> JsonObject:
        answer = await self._send("GET", url)
        if answer.status != _OK:
            raise unavailable(url, f"answered with HTTP status {answer.status}")
        return _object(answer.text)

    async def _send(
        self, method: str, url: str, *, headers: tuple[tuple[str, str], ...] = (), body: bytes | None = None
    ) -> HttpAnswer:
        call = HttpCall(
            method=method,
            url=url,
            headers=(("accept", "application/json"), *headers),
            query=(),
            body=body,
            timeout_s=TIMEOUT_S,
        )
        try:
            answer = await self._http.send(call)
        except HttpCallFailed as failed:
            raise unavailable(url, f"cannot be reached: {failed}") from failed
        if len(answer.text) > MAX_DOCUMENT:
            raise unavailable(url, "sent a document that is too large")
        return answer


def unavailable(url: str, what: str) -> ServiceError:
    detail = f"The identity provider ({urlsplit(url).hostname}) {what.rstrip('.')}."
    return ServiceError("identity_provider_unavailable", ErrorKind.UNAVAILABLE, detail)


def _required(document: JsonObject, name: str, issuer: str) -> str:
    endpoint = _endpoint(document, name, issuer)
    if endpoint is None:
        raise unavailable(issuer, f"has no {name} in its metadata")
    return endpoint


def _endpoint(document: JsonObject, name: str, issuer: str) -> str | None:
    """The address has the protection of the issuer's."""
    url = document.get(name)
    if not isinstance(url, str):
        return None
    scheme = urlsplit(url).scheme
    if scheme != "https" and not (scheme == "http" and urlsplit(issuer).scheme == "http"):
        raise unavailable(issuer, f"has a {name} without TLS in its metadata")
    return url


def _verifies(key: JsonObject) -> bool:
    """Whether a key can verify tokens."""
    algorithms = FAMILIES.get(str(key.get("kty")), frozenset())
    return bool(algorithms) and key.get("alg") in (None, *algorithms) and key.get("use") in (None, "sig")


def _object(text: str) -> JsonObject:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _basic(client_id: str, secret: str) -> str:
    """RFC 6749, section 2.3.1: both are form-encoded first."""
    pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
