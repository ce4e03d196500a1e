"""The token endpoint of an authorization server (RFC 6749, sections 4 to 6; RFC 8707)."""

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote

from mcp.shared.auth import OAuthMetadata, OAuthToken
from pydantic import ValidationError

from domain.json_value import JsonObject
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.oauth.grants import OAuthClient
from infrastructure.mcp.oauth.requests import OAuthRequests

BASIC, POST, PRIVATE_KEY, NONE = "client_secret_basic", "client_secret_post", "private_key_jwt", "none"

_OK = 200
_REFUSED = (400, 401)
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_CODE = re.compile(r"[a-z_]{1,64}")


class TokenRefusedError(Exception):
    """The authorization server rejected the request. `code` is of RFC 6749, section 5.2, or the
    server's own."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TokenEndpoint:
    def __init__(self, *, requests: OAuthRequests) -> None:
        self._requests = requests

    async def assertion(self, url: str, client: OAuthClient, proof: str | None, form: Mapping[str, str]) -> str:
        """An assertion in place of a token, which is no bearer token (ID-JAG). Raises as
        `request`."""
        document = await self._answer(url, client, proof, form)
        assertion = document.get("access_token")
        if not isinstance(assertion, str) or document.get("issued_token_type") != ID_JAG:
            raise TransportFailedError(auth_fault("The identity provider gave no assertion (ID-JAG) for the server."))
        return assertion

    async def request(self, url: str, client: OAuthClient, proof: str | None, form: Mapping[str, str]) -> OAuthToken:
        """`proof` is the client's secret, or an assertion, by its method. Raises TokenRefusedError,
        TransportFailedError."""
        document = await self._answer(url, client, proof, form)
        try:
            return OAuthToken.model_validate(document)
        except ValidationError as exc:
            raise TransportFailedError(auth_fault("The authorization server's token cannot be used.")) from exc

    async def _answer(self, url: str, client: OAuthClient, proof: str | None, form: Mapping[str, str]) -> JsonObject:
        sent, headers = dict(form), {}
        if proof is not None and client.auth_method == BASIC:
            pair = f"{quote(client.client_id, safe='')}:{quote(proof, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            sent["client_id"] = client.client_id
            if proof is not None and client.auth_method == POST:
                sent["client_secret"] = proof
            elif proof is not None and client.auth_method == PRIVATE_KEY:
                sent |= {"client_assertion_type": _ASSERTION, "client_assertion": proof}
        answer = await self._requests.post_form(url, sent, headers)
        document = answer.document
        if answer.status == _OK and document is not None:
            return document
        if answer.status in _REFUSED and document is not None:
            raise TokenRefusedError(error_code(document.get("error")))
        detail = f"The authorization server gave no token (HTTP status {answer.status})."
        raise TransportFailedError(auth_fault(detail))


def auth_method(metadata: OAuthMetadata, *, has_secret: bool, has_key: bool = False) -> str:
    """The authentication method of the client at the token endpoint. Raises TransportFailedError if
    none is possible."""
    offered = metadata.token_endpoint_auth_methods_supported
    if has_key:
        if offered is None or PRIVATE_KEY in offered:
            return PRIVATE_KEY
        raise TransportFailedError(
            auth_fault("The authorization server takes no assertions of clients (private_key_jwt).")
        )
    if not has_secret:
        return NONE
    if offered is None or BASIC in offered:
        return BASIC
    if POST in offered:
        return POST
    raise TransportFailedError(auth_fault("The authorization server takes no client secrets."))


def error_code(said: object) -> str:
    """An error code that is safe to show: codes are words."""
    return said if isinstance(said, str) and _CODE.fullmatch(said) else "unknown_error"
