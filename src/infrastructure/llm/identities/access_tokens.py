"""Access tokens for calls of models. Above: the HTTP of providers. Below: HTTP to a cloud's token
endpoint."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
import msgspec

from application.models.ports import ModelError
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.exchange import ProviderAddress, ProviderHttp, read_body
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    invalid_reply,
    without_secrets,
)
from infrastructure.secrets.redaction import Redactor

_TOTAL_S = 20.0
_EARLY_S = 300.0
"""Tokens are renewed so long before they expire."""
_FORM = {
    "content-type": "application/x-www-form-urlencoded",
    "accept": "application/json",
    "accept-encoding": ENCODINGS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    value: str = field(repr=False)
    valid_s: float


class AccessTokens(Protocol):
    async def fetch(self) -> AccessToken:
        """A new token. Raises ModelError."""
        ...


class _Token(msgspec.Struct):
    access_token: str
    expires_in: int | str = 3600
    """Azure's metadata server sends it as text."""


_decode = msgspec.json.Decoder(_Token).decode


class TokenEndpoint:
    """One endpoint that gives out tokens. `redactor` hides the key in what it says."""

    def __init__(self, http: ProviderHttp, url: str, redactor: Redactor) -> None:
        self._http = http
        self._url = url
        self._redactor = redactor

    async def exchanged(self, form: bytes) -> AccessToken:
        """The token for a key. Raises ModelError."""
        return await self._answered(self._http.to(self._url, _FORM), form)

    async def of_machine(self, headers: Mapping[str, str]) -> AccessToken:
        """The token of the machine's identity. Raises ModelError."""
        return await self._answered(self._http.to(self._url, {**headers, "accept-encoding": ENCODINGS}), None)

    async def _answered(self, address: ProviderAddress, form: bytes | None) -> AccessToken:
        try:
            sending = address.get(total_s=_TOTAL_S) if form is None else address.send(form, total_s=_TOTAL_S)
            answer = await sending
            try:
                said = await read_body(answer, MAX_ERROR_BYTES, within_s=_TOTAL_S)
            finally:
                answer.close()
        except (aiohttp.ClientError, EgressBlockedError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=False) from exc
        if answer.status != 200:
            raise self._refused(error_of_answer(answer.status, answer.headers, said))
        try:
            token = _decode(said)
            return AccessToken(value=token.access_token, valid_s=float(token.expires_in))
        except (msgspec.MsgspecError, ValueError) as exc:
            raise invalid_reply("sent no access token") from exc

    def _refused(self, error: ModelError) -> ModelError:
        """A refusal of a key has the status 400 here (RFC 6749, section 5.2)."""
        error = without_secrets(error, self._redactor)
        if error.code != "model_rejected":
            return error
        detail = "The cloud refused the identity of the model provider."
        return ModelError("model_auth", detail, retryable=False, provider_error=error.provider_error)


class IdentityHeaders:
    """Headers with a token that is renewed in time. One call renews it, others wait for it. Each
    token is given to `hide`."""

    def __init__(
        self, tokens: AccessTokens, *, hide: Callable[[str], object], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens = tokens
        self._hide = hide
        self._monotonic = monotonic
        self._renewing = asyncio.Lock()
        self._headers: dict[str, str] = {}
        self._until = float("-inf")

    async def headers(self) -> Mapping[str, str]:
        """Raises ModelError."""
        if self._monotonic() >= self._until:
            async with self._renewing:
                if self._monotonic() >= self._until:
                    token = await self._tokens.fetch()
                    self._hide(token.value)
                    self._headers = {"authorization": f"Bearer {token.value}"}
                    self._until = self._monotonic() + max(token.valid_s - _EARLY_S, token.valid_s / 2)
        return self._headers


Headers = Callable[[], Awaitable[Mapping[str, str]]]
