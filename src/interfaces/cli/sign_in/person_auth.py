"""Authentication of the command line's requests with a stored sign-in."""

import time
from collections.abc import AsyncGenerator, Callable

import httpx
import msgspec

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.provider import ProviderClient, SignInRefused
from interfaces.cli.sign_in.stored import StoredSignIn, StoredSignIns

_EARLY_S = 30.0
_UNAUTHORIZED = 401


class _Problem(msgspec.Struct):
    code: str = ""


class PersonAuth(httpx.Auth):
    """Rules:
    - An expired token is renewed before a request, and once more if the service calls it invalid.
    - One process renews; the others wait for it and read what it stored.
    - A service that refuses the person is not asked again.

    Raises: CommandFailure if the sign-in has ended.
    """

    def __init__(
        self,
        sign_in: StoredSignIn,
        *,
        stored: StoredSignIns,
        provider: ProviderClient,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sign_in = sign_in
        self._stored = stored
        self._provider = provider
        self._now = now

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if self._sign_in.expires_at - _EARLY_S <= self._now():
            await self._renew()
        request.headers["Authorization"] = f"Bearer {self._sign_in.id_token}"
        response = yield request
        if response.status_code == _UNAUTHORIZED and _code_of(await response.aread()) == "token_invalid":
            await self._renew()
            request.headers["Authorization"] = f"Bearer {self._sign_in.id_token}"
            yield request

    async def _renew(self) -> None:
        """Take what another process renewed meanwhile, or renew."""
        refused = self._sign_in
        async with self._stored.locked(refused.service):
            found = self._stored.of(refused.service)
            if found is None:
                raise _ended(refused)
            if found.id_token == refused.id_token:
                found = await self._renewed(found)
                self._stored.store(found)
            self._sign_in = found

    async def _renewed(self, sign_in: StoredSignIn) -> StoredSignIn:
        if sign_in.refresh_token is None:
            raise _ended(sign_in)
        form = {
            "grant_type": "refresh_token",
            "refresh_token": sign_in.refresh_token,
            "client_id": sign_in.client_id,
        }
        endpoints = await self._provider.endpoints(sign_in.issuer)
        try:
            tokens = await self._provider.tokens(endpoints, form, former=sign_in.refresh_token)
        except SignInRefused as refusal:
            raise _ended(sign_in) from refusal
        return StoredSignIn(
            service=sign_in.service,
            issuer=sign_in.issuer,
            client_id=sign_in.client_id,
            id_token=tokens.id_token,
            expires_at=tokens.expires_at,
            refresh_token=tokens.refresh_token,
        )


def _code_of(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=_Problem).code
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _ended(sign_in: StoredSignIn) -> CommandFailure:
    return CommandFailure(
        f"Your sign-in to {sign_in.service} has expired. Sign in again: `dragoman login`. To use an API key instead: "
        "`dragoman logout`."
    )
