"""FindOAuthClient: the client with a client id, which is the URL of its metadata or a
registration."""

from urllib.parse import urlsplit

from application.gateway.authorization.oauth_client import OAuthClient, client_of, is_client_url
from application.gateway.authorization.ports import ClientDocuments
from application.gateway.authorization.registrations import (
    MAX_SEALED,
    REGISTERED_PREFIX,
    ClientRegistrations,
    unknown_client,
)
from domain.errors import ServiceError, invalid

_OPEN = (None, "none")
_OF_SECRETS = ("client_secret", "client_secret_expires_at")
"""What no metadata document may have (draft-ietf-oauth-client-id-metadata-document): everyone reads
it."""


class FindOAuthClient:
    """Rules:
    - A client id that is a URL names a metadata document, which repeats it.
    - The document is of a public client: a client that says it has a secret, or shows one, is
      refused.
    - Another client id is a registration (`ClientRegistrations`).

    Raises: ServiceError invalid_client.
    """

    def __init__(self, *, documents: ClientDocuments, registrations: ClientRegistrations) -> None:
        self._documents = documents
        self._registrations = registrations

    async def execute(self, client_id: str) -> OAuthClient:
        if client_id.startswith(REGISTERED_PREFIX) and len(client_id) <= MAX_SEALED:
            return await self._registrations.find(client_id)
        if not is_client_url(client_id):
            raise unknown_client()
        document = await self._documents.read(client_id)
        if document.get("client_id") != client_id:
            raise invalid("invalid_client", "The metadata document of the client is of another client.")
        if document.get("token_endpoint_auth_method") not in _OPEN:
            raise invalid("invalid_client", "The client wants to authenticate itself, which the gateway does not do.")
        if any(document.get(name) is not None for name in _OF_SECRETS):
            raise invalid(
                "invalid_client", "The metadata document of the client shows a secret, which no one may know."
            )
        try:
            return client_of(document, client_id=client_id, host=urlsplit(client_id).hostname)
        except ServiceError as error:
            raise invalid(
                "invalid_client", f"The metadata document of the client is not valid. {error.detail}"
            ) from error
