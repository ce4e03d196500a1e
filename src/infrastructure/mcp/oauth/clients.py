"""Selects the OAuth client: registered by hand, by client metadata document, or by dynamic
registration (RFC 7591), in the order of MCP 2025-11-25, basic/authorization."""

from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import ValidationError

from application.mcp.oauth_client import client_document
from domain.mcp.auth import AuthorizationCodeAuth
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.oauth.discovery import FoundServer
from infrastructure.mcp.oauth.grants import Grant, OAuthClient
from infrastructure.mcp.oauth.requests import OAuthRequests
from infrastructure.mcp.oauth.tokens import BASIC, NONE, POST, auth_method

_CREATED = (200, 201)


class Clients:
    def __init__(self, *, requests: OAuthRequests) -> None:
        self._requests = requests

    async def client_for(
        self,
        auth: AuthorizationCodeAuth,
        found: FoundServer,
        *,
        redirect_uri: str,
        metadata_url: str,
        former: Grant | None,
    ) -> OAuthClient:
        """The client for an authorization code. `metadata_url` is the address of Dragoman's client
        metadata document. An earlier registration with the same authorization server is reused.
        Raises TransportFailedError."""
        metadata = found.metadata
        if auth.client_id is not None:
            method = auth_method(metadata, has_secret=auth.client_secret is not None)
            return OAuthClient(client_id=auth.client_id, auth_method=method, redirect_uri=redirect_uri)
        if metadata.client_id_metadata_document_supported and is_valid_client_metadata_url(metadata_url):
            return OAuthClient(client_id=metadata_url, auth_method=NONE, redirect_uri=redirect_uri)
        if former is not None and former.issuer == found.issuer and former.client.redirect_uri == redirect_uri:
            return former.client
        if metadata.registration_endpoint is None:
            raise TransportFailedError(
                auth_fault("The authorization server registers no clients by itself; give auth.client_id.")
            )
        return await self._registered(str(metadata.registration_endpoint), found, redirect_uri)

    async def _registered(self, url: str, found: FoundServer, redirect_uri: str) -> OAuthClient:
        offered = found.metadata.token_endpoint_auth_methods_supported
        wanted = next((method for method in (BASIC, POST) if offered is None or method in offered), NONE)
        answer = await self._requests.post_json(url, client_document(redirect_uri, method=wanted))
        if answer.status not in _CREATED or answer.document is None:
            detail = f"The authorization server did not register Dragoman as a client (HTTP status {answer.status})."
            raise TransportFailedError(auth_fault(detail))
        try:
            made = OAuthClientInformationFull.model_validate(answer.document)
        except ValidationError as exc:
            raise TransportFailedError(auth_fault("The authorization server's registration cannot be used.")) from exc
        method = made.token_endpoint_auth_method or (wanted if made.client_secret else NONE)
        if method not in (BASIC, POST, NONE) or (method != NONE and made.client_secret is None):
            raise TransportFailedError(auth_fault("The authorization server's registration cannot be used."))
        return OAuthClient(
            client_id=made.client_id, auth_method=method, secret=made.client_secret, redirect_uri=redirect_uri
        )
