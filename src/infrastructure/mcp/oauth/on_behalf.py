"""Tokens on behalf of a person, from their sign-in: token exchange (RFC 8693), and assertions of
the identity provider (draft-ietf-oauth-identity-assertion-authz-grant). Above: the broker. Below:
discovery and token endpoints."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never

from mcp.shared.auth import OAuthMetadata, OAuthToken
from mcp.shared.auth_utils import resource_url_from_server_url

from application.mcp.sign_in_issuers import origin_of, takes_sign_in_with
from application.system.ports import Clock
from domain.identity.identity_provider import IdentityProvider
from domain.ids import IdentityProviderId
from domain.mcp.auth import IdJagAuth, SubjectToken, TokenExchangeAuth
from domain.mcp.server import McpServer
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.oauth.client_proofs import ClientProofs
from infrastructure.mcp.oauth.discovery import Discovery
from infrastructure.mcp.oauth.grants import Grant, OAuthClient, Subject
from infrastructure.mcp.oauth.obtaining import granted
from infrastructure.mcp.oauth.requests import OAuthRequests, ServerRequests
from infrastructure.mcp.oauth.tokens import ID_JAG, TokenEndpoint, TokenRefusedError, auth_method

_T = TypeVar("_T")
FindProvider = Callable[[IdentityProviderId], Awaitable[IdentityProvider | None]]

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TYPES = {
    SubjectToken.ID_TOKEN: "urn:ietf:params:oauth:token-type:id_token",
    SubjectToken.ACCESS_TOKEN: "urn:ietf:params:oauth:token-type:access_token",
}
_SIGN_IN_AGAIN = "invalid_grant"
"""The code for a token of a sign-in that is valid no more."""
_OF_ANOTHER_PROVIDER = (
    "auth.issuer is not of the identity provider that the person signed in with, so it gets no token of theirs."
)
_OF_ANOTHER = "The identity provider is of another organization: it gives tokens for the server's URL alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A token that is asked for, and from whose sign-in."""

    server: McpServer
    grant: Grant
    subject: Subject
    provider: IdentityProvider
    requests: OAuthRequests

    @property
    def endpoint(self) -> TokenEndpoint:
        return TokenEndpoint(requests=self.requests)

    @property
    def resource(self) -> str:
        """The server, as others name it (RFC 8707)."""
        assert self.server.config.url is not None
        return resource_url_from_server_url(self.server.config.url)

    @property
    def form(self) -> dict[str, str]:
        return {
            "grant_type": _EXCHANGE,
            "subject_token": self.subject.token,
            "subject_token_type": _TYPES[self.subject.kind],
        }


class OnBehalf:
    """Rules:
    - The token of a sign-in goes to the identity provider that issued it, or to another
      authorization server at its origin; never to one that an MCP server names.
    - What is asked for is for this server: its URL as the resource, or the audience that the
      configuration names. With an identity provider of another organization it is the URL alone:
      admins name audiences, scopes, clients and authorization servers only at identity providers of
      their organization, so those give no assertions.
    - An assertion goes to the authorization server of the configuration, for which it was given.
    - Refresh tokens are not used: what was exchanged ends with its token, at the latest with the
      sign-in's if it does not say when. Another needs a valid sign-in.
    """

    def __init__(
        self, *, requests: ServerRequests, proofs: ClientProofs, find_provider: FindProvider, clock: Clock
    ) -> None:
        self._requests = requests
        self._proofs = proofs
        self._find_provider = find_provider
        self._clock = clock

    async def exchanged(self, server: McpServer, grant: Grant) -> Grant:
        """The grant with a token for the server. Raises TransportFailedError; TokenRefusedError for
        a sign-in that is of no use any more."""
        auth, subject = server.config.auth, grant.subject
        assert isinstance(auth, TokenExchangeAuth | IdJagAuth)
        assert subject is not None
        provider = await self._find_provider(subject.provider_id)
        if provider is None:
            raise TokenRefusedError(_SIGN_IN_AGAIN)
        if provider.organization_id != server.organization_id and _names_more_than_url(auth):
            raise TransportFailedError(auth_fault(_OF_ANOTHER))
        asked = _Asked(
            server=server, grant=grant, subject=subject, provider=provider, requests=await self._requests.of(server)
        )
        match auth:
            case TokenExchangeAuth():
                return await self._by_exchange(asked, auth)
            case IdJagAuth():
                return await self._by_assertion(asked, auth)
            case _ as unreachable:
                assert_never(unreachable)

    async def _by_exchange(self, asked: _Asked, auth: TokenExchangeAuth) -> Grant:
        if not takes_sign_in_with(auth, asked.provider.issuer):
            raise TransportFailedError(auth_fault(_OF_ANOTHER_PROVIDER))
        metadata = await _metadata_of(asked, auth.issuer)
        if auth.client_id is None:
            client, proof = _client_of(asked.provider, metadata)
        else:
            client = _configured(auth, metadata)
            proof = await self._proofs.of(asked.server, client, str(metadata.issuer))
        resource = auth.resource or (None if auth.audience else asked.resource)
        form = {
            **asked.form,
            "requested_token_type": _TYPES[SubjectToken.ACCESS_TOKEN],
            **({"audience": auth.audience} if auth.audience else {}),
            **({"resource": resource} if resource else {}),
            **_scope(auth),
        }
        url = str(metadata.token_endpoint)
        token = await _given(asked.endpoint.request(url, client, proof, form))
        return self._granted(asked, token, client, url)

    async def _by_assertion(self, asked: _Asked, auth: IdJagAuth) -> Grant:
        metadata = await _metadata_of(asked, None)
        issuing = await Discovery(requests=asked.requests).of_issuer(auth.issuer)
        own, proof = _client_of(asked.provider, metadata)
        wanted = {
            **asked.form,
            "requested_token_type": ID_JAG,
            "audience": auth.issuer,
            "resource": asked.resource,
            **_scope(auth),
        }
        assertion = await _given(asked.endpoint.assertion(str(metadata.token_endpoint), own, proof, wanted))
        client, url = _configured(auth, issuing), str(issuing.token_endpoint)
        form = {"grant_type": _JWT_BEARER, "assertion": assertion, "resource": asked.resource, **_scope(auth)}
        proof = await self._proofs.of(asked.server, client, auth.issuer)
        try:
            token = await asked.endpoint.request(url, client, proof, form)
        except TokenRefusedError as refused:
            # The person's sign-in is valid: another one would not help.
            detail = f"The server's authorization server takes no assertion of the identity provider ({refused.code})."
            raise TransportFailedError(auth_fault(detail)) from refused
        return self._granted(asked, token, client, url)

    def _granted(self, asked: _Asked, token: OAuthToken, client: OAuthClient, endpoint: str) -> Grant:
        grant = granted(
            token.model_copy(update={"refresh_token": None}),
            client,
            binding=asked.grant.binding,
            issuer=asked.grant.issuer,
            resource=asked.resource,
            endpoint=endpoint,
            scope=None,
            now=self._clock.now(),
        )
        return replace(grant, subject=asked.subject, expires_at=grant.expires_at or asked.subject.expires_at)


def _names_more_than_url(auth: TokenExchangeAuth | IdJagAuth) -> bool:
    """Whether a server's configuration says more of what is asked for than its URL."""
    if isinstance(auth, IdJagAuth):
        return True
    named = (auth.audience, auth.resource, auth.issuer, auth.client_id)
    return any(each is not None for each in named) or bool(auth.scopes)


async def _metadata_of(asked: _Asked, issuer: str | None) -> OAuthMetadata:
    """The metadata of the identity provider, or of another authorization server of it."""
    provider, discovery = asked.provider, Discovery(requests=asked.requests)
    metadata = await discovery.of_issuer(issuer or provider.issuer)
    if issuer is not None and origin_of(str(metadata.token_endpoint)) != origin_of(issuer):
        raise TransportFailedError(auth_fault("The token endpoint of auth.issuer is at another origin."))
    return metadata


def _client_of(provider: IdentityProvider, metadata: OAuthMetadata) -> tuple[OAuthClient, str | None]:
    """The client that people sign in with, and its secret."""
    secret = provider.client_secret
    method = auth_method(metadata, has_secret=secret is not None)
    return OAuthClient(client_id=provider.client_id, auth_method=method), secret


def _configured(auth: TokenExchangeAuth | IdJagAuth, metadata: OAuthMetadata) -> OAuthClient:
    assert auth.client_id is not None
    offered = metadata.token_endpoint_auth_signing_alg_values_supported
    return OAuthClient(
        client_id=auth.client_id,
        auth_method=auth_method(
            metadata, has_secret=auth.client_secret is not None, has_key=auth.private_key is not None
        ),
        algorithms=None if offered is None else tuple(offered),
    )


async def _given(answer: Awaitable[_T]) -> _T:
    """Only a sign-in that is valid no more is the person's to renew."""
    try:
        return await answer
    except TokenRefusedError as refused:
        if refused.code == _SIGN_IN_AGAIN:
            raise
        detail = f"The identity provider gives no token for the server on behalf of the person ({refused.code})."
        raise TransportFailedError(auth_fault(detail)) from refused


def _scope(auth: TokenExchangeAuth | IdJagAuth) -> dict[str, str]:
    return {"scope": " ".join(auth.scopes)} if auth.scopes else {}
