"""DescribeAuthorization: where clients find the authorization server of the gateway, and what it
does."""

from application.gateway.authorization.check_authorization import SCOPE
from application.gateway.sessions.open_session import GATEWAY_PATH
from application.identity.ports import IdentityProviderDirectory
from application.mcp.oauth_client import PublicAddress, public_url
from domain.errors import not_found
from domain.json_value import JsonObject, JsonValue

AUTHORIZE_PATH = "/console/authorize"
TOKEN_PATH = "/oauth/token"  # a path
REVOKE_PATH = "/oauth/revoke"
REGISTER_PATH = "/register"


class DescribeAuthorization:
    """Public. Rules:
    - There is an authorization server while there is an identity provider with which people sign
      in.
    - With `external`, clients are sent to that issuer, and this service is no authorization server.
      Its tokens are for the gateway's URL without a query.
    - The resource is the URL that a client was given, with its query, which names an agent.
    """

    def __init__(
        self, *, identity_providers: IdentityProviderDirectory, address: PublicAddress, external: str | None
    ) -> None:
        self._providers = identity_providers
        self._address = address
        self._external = external

    async def is_on(self) -> bool:
        """Whether this service is the authorization server."""
        return self._external is None and await self._providers.exist()

    async def resource(self, query: str) -> JsonObject:
        """The metadata of the protected resource (RFC 9728)."""
        url = f"{self._address.url or ''}{GATEWAY_PATH}"
        document: JsonObject = {
            "resource": f"{url}?{query}" if query and self._external is None else url,
            "resource_name": "Dragoman",
            "bearer_methods_supported": ["header"],
        }
        if self._external is not None:
            document["authorization_servers"] = [self._external]
        elif await self.is_on():
            document["authorization_servers"] = [self._address.url]
            document["scopes_supported"] = [SCOPE]
        return document

    async def server(self) -> JsonObject:
        """The metadata of the authorization server (RFC 8414). Raises NOT_FOUND
        `authorization_server_not_found`, CONFLICT `not_listening`."""
        issuer = public_url(self._address, "")
        if not await self.is_on():
            raise not_found("authorization server", issuer)
        open_to_all: list[JsonValue] = ["none"]
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}{AUTHORIZE_PATH}",
            "token_endpoint": f"{issuer}{TOKEN_PATH}",
            "registration_endpoint": f"{issuer}{REGISTER_PATH}",
            "revocation_endpoint": f"{issuer}{REVOKE_PATH}",
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": open_to_all,
            "revocation_endpoint_auth_methods_supported": open_to_all,
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }
