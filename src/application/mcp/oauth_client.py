"""Dragoman as an OAuth client: its metadata, and its redirect URL."""

from typing import Protocol
from urllib.parse import urlsplit

from domain.errors import conflict
from domain.json_value import JsonObject

CALLBACK_PATH = "/oauth/callback"
CLIENT_PATH = "/oauth/client.json"

_NAME = "Dragoman"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class PublicAddress(Protocol):
    """The public address of the service."""

    @property
    def url(self) -> str | None:
        """Without a trailing slash; None while the service does not listen."""
        ...


def public_url(address: PublicAddress, path: str) -> str:
    """Raises: CONFLICT `not_listening`."""
    if address.url is None:
        raise conflict(
            "not_listening",
            "A browser has to come back to the service, and none is running. Start it with `dragoman serve`.",
        )
    return f"{address.url}{path}"


def client_document(redirect_uri: str, *, method: str, client_id: str | None = None) -> JsonObject:
    """The client metadata (RFC 7591, section 2); with `client_id`, as a client metadata document.
    `method` is the authentication method of the token endpoint."""
    is_local = urlsplit(redirect_uri).hostname in _LOOPBACK
    document: JsonObject = {
        "client_name": _NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native" if is_local else "web",
    }
    return document if client_id is None else {"client_id": client_id, **document}


class DescribeOAuthClient:
    """Public: authorization servers fetch the document by its URL, which is the client id
    (draft-ietf-oauth-client-id-metadata-document). Raises: CONFLICT `not_listening`."""

    def __init__(self, *, address: PublicAddress) -> None:
        self._address = address

    async def execute(self) -> JsonObject:
        redirect_uri = public_url(self._address, CALLBACK_PATH)
        return client_document(redirect_uri, method="none", client_id=public_url(self._address, CLIENT_PATH))
