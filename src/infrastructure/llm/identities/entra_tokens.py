"""Access tokens of Microsoft Entra for models on Azure: of an application by its secret, and of the
machine. https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from application.models.ports import ModelError
from infrastructure.llm.identities.access_tokens import AccessToken, TokenEndpoint

_RESOURCE = "https://cognitiveservices.azure.com"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MAX_ASSERTION = 16_384


def token_url(authority: str, tenant_id: str) -> str:
    return f"{authority.rstrip('/')}/{tenant_id}/oauth2/v2.0/token"


class ApplicationTokens:
    """Tokens for the secret of an application."""

    def __init__(self, *, client_id: str, secret: str, endpoint: TokenEndpoint) -> None:
        self._client_id = client_id
        self._secret = secret
        self._endpoint = endpoint

    async def fetch(self) -> AccessToken:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._secret,
            "scope": f"{_RESOURCE}/.default",
        }
        return await self._endpoint.exchanged(urlencode(form).encode())


class WorkloadTokens:
    """Tokens for the federated token in a file (RFC 7523), which is read each time: its cluster
    renews it. It is given to `hide`."""

    def __init__(
        self, *, client_id: str, token_file: Path, endpoint: TokenEndpoint, hide: Callable[[str], object]
    ) -> None:
        self._client_id = client_id
        self._token_file = token_file
        self._endpoint = endpoint
        self._hide = hide

    async def fetch(self) -> AccessToken:
        assertion = await asyncio.to_thread(self._assertion)
        self._hide(assertion)
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": assertion,
            "scope": f"{_RESOURCE}/.default",
        }
        return await self._endpoint.exchanged(urlencode(form).encode())

    def _assertion(self) -> str:
        try:
            with self._token_file.open("rb") as file:
                read = file.read(_MAX_ASSERTION + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            read = ""
        if not 0 < len(read) <= _MAX_ASSERTION:
            detail = "The file AZURE_FEDERATED_TOKEN_FILE has no token that can be read."
            raise ModelError("model_auth", detail, retryable=False)
        return read


class ManagedIdentityTokens:
    """Tokens of the machine's managed identity, by its metadata server."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self._endpoint = endpoint

    async def fetch(self) -> AccessToken:
        return await self._endpoint.of_machine({"metadata": "true"})


def managed_identity_url(metadata: str, client_id: str | None) -> str:
    wanted = {"api-version": "2018-02-01", "resource": f"{_RESOURCE}/"}
    return f"{metadata}?{urlencode(wanted | ({} if client_id is None else {'client_id': client_id}))}"
