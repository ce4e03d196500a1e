"""Access tokens of Microsoft Entra for models on Azure: of an application by its secret, and of the machine.
https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow"""

from urllib.parse import urlencode

from infrastructure.llm.identities.access_tokens import AccessToken, TokenEndpoint

_RESOURCE = "https://cognitiveservices.azure.com"


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


class ManagedIdentityTokens:
    """Tokens of the machine's managed identity, by its metadata server."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self._endpoint = endpoint

    async def fetch(self) -> AccessToken:
        return await self._endpoint.of_machine({"metadata": "true"})


def managed_identity_url(metadata: str, client_id: str | None) -> str:
    wanted = {"api-version": "2018-02-01", "resource": f"{_RESOURCE}/"}
    return f"{metadata}?{urlencode(wanted | ({} if client_id is None else {'client_id': client_id}))}"
