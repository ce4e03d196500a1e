"""Secrets in HashiCorp Vault or OpenBao: the KV engine, version 2, over HTTP.

https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import httpx

from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.shared_work import SharedWork
from domain.ids import OrganizationId
from domain.secrets.secret import MAX_VALUE_BYTES, VaultReference
from infrastructure.secrets.external_secrets import SecretUnreadableError
from infrastructure.secrets.vault_login import VaultLogin

MAX_SECRETS = 1_000
MAX_ANSWER_BYTES = 1024 * 1024
TIMEOUT_S = 10.0
REFUSED_S = 5.0
LOGIN_EVERY_S = 10.0
"""Vault refuses an ended token and a path of others alike: only an older token is replaced when it
refuses."""
RENEW_SHARE = 0.67
"""Share of a token's life after which another one is fetched."""
_OK, _FORBIDDEN, _NOT_FOUND = 200, 403, 404


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPlace:
    """`prefix` has `{organization}`, which is replaced by the organization's id: no reference names
    another one's path."""

    url: str
    mount: str
    prefix: str
    namespace: str | None = None

    def address(self, organization_id: OrganizationId, path: str) -> str:
        prefix = self.prefix.replace("{organization}", organization_id)
        return f"{self.url}/v1/{self.mount}/data/{prefix}/{path}"


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    since: float
    until: float | None


@dataclass(frozen=True, slots=True)
class _Read:
    values: dict[str, str]
    at: float
    is_refused: bool = False


class VaultSecrets:
    """Rules:
    - Values are kept in memory for `cache_s`, at most 1,000 secrets. `forget` drops those of an
      organization.
    - A missing secret is not kept; a refusal is for `REFUSED_S`.
    - A token of a login is replaced before it expires, and after Vault refused it, but not within
      `LOGIN_EVERY_S`.
    - There is one login at a time. Who needs its token meanwhile shares it, or its failure.
    """

    def __init__(
        self,
        *,
        place: VaultPlace,
        token: str | None,
        login: VaultLogin | None,
        client: Callable[[], httpx.AsyncClient],
        clock: Clock,
        cache_s: float,
    ) -> None:
        self._place = place
        self._login = login
        self._token = None if token is None else _Token(token, 0, None)
        self._client = client
        self._opened: httpx.AsyncClient | None = None
        self._clock = clock
        self._cache_s = cache_s
        self._values: LruCache[tuple[OrganizationId, str], _Read] = LruCache(MAX_SECRETS)
        self._forgets = 0
        self._logins: SharedWork[str, _Token] = SharedWork(name="vault-login")

    async def value(self, organization_id: OrganizationId, reference: VaultReference) -> str | None:
        """None without such a secret or key. Raises SecretUnreadableError, within `TIMEOUT_S`."""
        place = (organization_id, reference.path)
        known = self._values.get(place)
        if known is None or self._clock.monotonic() - known.at >= (REFUSED_S if known.is_refused else self._cache_s):
            forgets = self._forgets
            async with _in_time():
                known = await self._read(organization_id, reference.path)
            if known is not None and forgets == self._forgets:
                self._values.put(place, known)
        if known is None:
            return None
        if known.is_refused:
            raise SecretUnreadableError("Vault refuses access to it")
        return known.values.get(reference.key)

    def forget(self, organization_id: OrganizationId) -> None:
        """A read that began before is not used after."""
        self._forgets += 1
        for place in self._values:
            if place[0] == organization_id:
                self._values.pop(place)

    async def close(self) -> None:
        await self._logins.close()
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def _read(self, organization_id: OrganizationId, path: str) -> _Read | None:
        address = self._place.address(organization_id, path)
        token = await self._current_token()
        status, answer = await self._ask("GET", address, token.value)
        if status == _FORBIDDEN and self._login is not None and self._clock.monotonic() - token.since >= LOGIN_EVERY_S:
            token = await self._current_token(refused=token)
            status, answer = await self._ask("GET", address, token.value)
        if status == _FORBIDDEN:
            return _Read({}, self._clock.monotonic(), is_refused=True)
        if status not in (_OK, _NOT_FOUND):
            raise SecretUnreadableError(f"Vault answered with HTTP status {status}")
        values = _texts_of(answer) if status == _OK else None
        return None if values is None else _Read(values, self._clock.monotonic())

    async def _current_token(self, *, refused: _Token | None = None) -> _Token:
        """`refused` is the token that another one replaces."""
        token, login = self._token, self._login
        is_over = token is not None and token.until is not None and self._clock.monotonic() >= token.until
        if login is not None and (token is None or token is refused or is_over):
            return await self._logins.result("login", lambda: self._logged_in(login))
        assert token is not None  # the settings have a token or a login
        return token

    async def _logged_in(self, login: VaultLogin) -> _Token:
        async with _in_time():
            status, answer = await self._ask("POST", f"{self._place.url}/v1/{login.path}", None, await login.body())
        auth = answer.get("auth")
        if status != _OK or not isinstance(auth, dict) or not isinstance(auth.get("client_token"), str):
            raise SecretUnreadableError(f"Vault refused the login of this service (HTTP status {status})")
        lease_s = auth.get("lease_duration")
        lasts = isinstance(lease_s, int) and lease_s > 0
        now = self._clock.monotonic()
        until = now + cast(int, lease_s) * RENEW_SHARE if lasts else None
        self._token = _Token(auth["client_token"], now, until)
        return self._token

    async def _ask(
        self, method: str, address: str, token: str | None, body: dict[str, str] | None = None
    ) -> tuple[int, dict[str, object]]:
        """The status, and the answer's object; empty for any other answer."""
        headers = {"x-vault-request": "true"}
        if token is not None:
            headers["x-vault-token"] = token
        if self._place.namespace is not None:
            headers["x-vault-namespace"] = self._place.namespace
        if self._opened is None:
            try:
                self._opened = self._client()
            except OSError:
                raise SecretUnreadableError("DRAGOMAN_VAULT_CA_FILE has no readable certificates") from None
        request = self._opened.build_request(method, address, headers=headers, json=body)
        response = await self._opened.send(request, stream=True)
        try:
            return response.status_code, _object_in(await _bounded(response))
        finally:
            await response.aclose()


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield
    except (httpx.HTTPError, TimeoutError):
        # Its message may have the token of a header.
        raise SecretUnreadableError("Vault does not answer") from None


async def _bounded(response: httpx.Response) -> bytes:
    content = b""
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise SecretUnreadableError("Vault's answer is too large")
    return content


def _object_in(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _texts_of(answer: dict[str, object]) -> dict[str, str] | None:
    """The keys of a secret with text; None for a version that was deleted."""
    data = answer.get("data")
    values = data.get("data") if isinstance(data, dict) else None
    if not isinstance(values, dict):
        return None
    texts = {key: value for key, value in values.items() if isinstance(value, str) and "\0" not in value}
    return {key: value for key, value in texts.items() if len(value.encode("utf-8", "replace")) <= MAX_VALUE_BYTES}
