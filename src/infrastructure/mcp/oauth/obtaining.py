"""Requests of tokens that need no person in a browser. Above: the broker. Below: discovery and the
token endpoint."""

from dataclasses import replace
from datetime import datetime, timedelta

from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthToken

from application.system.ports import Clock
from domain.mcp.auth import ClientCredentialsAuth
from domain.mcp.server import McpServer
from infrastructure.mcp.faults import TransportFailedError, TransportFault, auth_fault, needs_auth_fault
from infrastructure.mcp.oauth.challenge import Challenge
from infrastructure.mcp.oauth.client_proofs import ClientProofs
from infrastructure.mcp.oauth.discovery import Discovery
from infrastructure.mcp.oauth.grants import Grant, OAuthClient, binding_of
from infrastructure.mcp.oauth.requests import ServerRequests
from infrastructure.mcp.oauth.tokens import TokenEndpoint, TokenRefusedError, auth_method

MORE_WANTED = "The server requires authorization: it requires more scopes than granted."


class Obtaining:
    """One per process. Methods raise TransportFailedError."""

    def __init__(self, *, requests: ServerRequests, proofs: ClientProofs, clock: Clock) -> None:
        self._requests = requests
        self._proofs = proofs
        self._clock = clock

    async def first(self, server: McpServer, challenge: Challenge, former: Grant | None) -> Grant:
        """A token for the client, from the authorization server that the MCP server names. `former`
        is the grant that it takes the place of."""
        auth, url = server.config.auth, server.config.url
        assert isinstance(auth, ClientCredentialsAuth)
        assert url is not None
        requests = await self._requests.of(server)
        found = await Discovery(requests=requests).find(url, challenge, auth.issuer)
        if former is not None and former.issuer != found.issuer:
            # A client's secret belongs to one authorization server; another may be an impostor
            # (MCP, SEP-2352).
            detail = "The server names another authorization server than before; save its auth with that issuer."
            raise TransportFailedError(auth_fault(detail))
        scope = " ".join(auth.scopes) or challenge.scope or " ".join(found.scopes or ()) or None
        if challenge.error == "insufficient_scope" and former is not None:
            scope = union_scopes(former.scope, challenge.scope)
            if scope == former.scope:
                raise TransportFailedError(needs_auth_fault(MORE_WANTED))
        has_key = auth.private_key is not None
        offered = found.metadata.token_endpoint_auth_signing_alg_values_supported
        client = OAuthClient(
            client_id=auth.client_id,
            auth_method=auth_method(found.metadata, has_secret=not has_key, has_key=has_key),
            algorithms=None if offered is None else tuple(offered),
        )
        form = {
            "grant_type": "client_credentials",
            "resource": found.resource,
            **({"scope": scope} if scope else {}),
        }
        endpoint = str(found.metadata.token_endpoint)
        try:
            token = await TokenEndpoint(requests=requests).request(
                endpoint, client, await self._proofs.of(server, client, found.issuer), form
            )
        except TokenRefusedError as refused:
            raise TransportFailedError(_refused(refused)) from refused
        return granted(
            token,
            client,
            binding=binding_of(server.config),
            issuer=found.issuer,
            resource=found.resource,
            endpoint=endpoint,
            scope=scope,
            now=self._clock.now(),
        )

    async def next(self, server: McpServer, grant: Grant) -> Grant:
        """A token in place of that of the grant: by its refresh token, or by a new request. Raises
        TokenRefusedError for a refresh token that is of no use."""
        form = {"resource": grant.resource, **({"scope": grant.scope} if grant.scope else {})}
        by_refresh = grant.refresh_token is not None
        if grant.refresh_token is not None:
            form |= {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
        else:
            form["grant_type"] = "client_credentials"
        proof = await self._proofs.of(server, grant.client, grant.issuer)
        tokens = TokenEndpoint(requests=await self._requests.of(server))
        try:
            token = await tokens.request(grant.token_endpoint, grant.client, proof, form)
        except TokenRefusedError as refused:
            if by_refresh:
                raise
            raise TransportFailedError(_refused(refused)) from refused
        renewed = granted(
            token,
            grant.client,
            binding=grant.binding,
            issuer=grant.issuer,
            resource=grant.resource,
            endpoint=grant.token_endpoint,
            scope=grant.scope,
            now=self._clock.now(),
        )
        # Without a new refresh token, the old one stays valid.
        return replace(renewed, refresh_token=renewed.refresh_token or grant.refresh_token)


def granted(
    token: OAuthToken,
    client: OAuthClient,
    *,
    binding: str,
    issuer: str,
    resource: str,
    endpoint: str,
    scope: str | None,
    now: datetime,
) -> Grant:
    """The grant of a token."""
    return Grant(
        binding=binding,
        issuer=issuer,
        resource=resource,
        token_endpoint=endpoint,
        client=client,
        scope=token.scope or scope,
        obtained_at=now,
        expires_at=_end_of(token, now),
        access_token=token.access_token,
        refresh_token=token.refresh_token,
    )


def _end_of(token: OAuthToken, now: datetime) -> datetime | None:
    return None if token.expires_in is None else now + timedelta(seconds=max(0, min(token.expires_in, 10**9)))


def _refused(refused: TokenRefusedError) -> TransportFault:
    return needs_auth_fault(f"The authorization server refuses the client of the server's auth ({refused.code}).")
