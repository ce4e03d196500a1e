"""Clients that register themselves: their registration is sealed into their client id, so that
nothing is stored."""

import json
from datetime import datetime, timedelta

from application.gateway.authorization.oauth_client import OAuthClient, client_of
from application.gateway.authorization.ports import ClientGrantStore
from application.system.ports import Clock
from application.tools.ports import Box
from domain.errors import ServiceError, invalid
from domain.identity.api_key import hash_token
from domain.json_value import JsonObject

REGISTERED_PREFIX = "dgc_"
MAX_SEALED = 1_000
"""Characters of a client id."""
UNUSED_LASTS = timedelta(days=30)
_PURPOSE = "gateway-client"


class ClientRegistrations:
    """Rules:
    - A registration is name and redirect URIs, and nothing else of what the client sent.
    - A client id cannot be made elsewhere, nor changed.
    - A registration that no person has used within `UNUSED_LASTS` expires.

    Raises: ServiceError invalid_client, invalid_redirect_uri, invalid_client_metadata.
    """

    def __init__(self, *, grants: ClientGrantStore, box: Box, clock: Clock) -> None:
        self._grants = grants
        self._box = box
        self._clock = clock

    def register(self, metadata: JsonObject) -> OAuthClient:
        client = client_of(metadata, client_id="")
        sealed = {
            "for": _PURPOSE,
            "client_name": client.name,
            "redirect_uris": [*client.redirect_uris],
            "at": self._clock.now().isoformat(timespec="seconds"),
        }
        text = self._box.encrypt(json.dumps(sealed, ensure_ascii=False, separators=(",", ":")).encode()).decode()
        client_id = REGISTERED_PREFIX + text.rstrip("=")
        if len(client_id) > MAX_SEALED:
            raise invalid("invalid_client_metadata", "The registration is too long: send fewer redirect URIs.")
        return client_of(metadata, client_id=client_id)

    async def find(self, client_id: str) -> OAuthClient:
        sealed = client_id.removeprefix(REGISTERED_PREFIX)
        try:
            document = json.loads(self._box.decrypt((sealed + "=" * (-len(sealed) % 4)).encode("latin-1", "replace")))
            if document["for"] != _PURPOSE:
                raise unknown_client()
            registered_at = datetime.fromisoformat(document["at"])
        except (ServiceError, ValueError, KeyError, TypeError) as error:
            raise unknown_client() from error
        if registered_at + UNUSED_LASTS <= self._clock.now() and not await self._grants.is_known(hash_token(client_id)):
            raise unknown_client()
        return client_of(document, client_id=client_id)


def unknown_client() -> ServiceError:
    return invalid("invalid_client", "This client is unknown, or its registration has expired: it must register again.")
