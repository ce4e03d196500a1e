"""Authorization code flow: the redirect of a person to an authorization server, and the answer
(OAuth 2.1 with PKCE; RFC 9207 for the issuer in the answer)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthToken

from application.mcp.authorization import (
    Account,
    AuthorizationAnswer,
    AuthorizationRequest,
    AuthorizedServer,
    PersonSignIn,
)
from application.mcp.oauth_client import CALLBACK_PATH, CLIENT_PATH, PublicAddress, public_url
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError, invalid
from domain.ids import ApiKeyId, McpServerId, OrganizationId
from domain.mcp.auth import AuthorizationCodeAuth, OnBehalfAuth, SubjectToken
from domain.mcp.server import McpServer
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.oauth.broker import TokenBroker
from infrastructure.mcp.oauth.challenge import Challenge
from infrastructure.mcp.oauth.client_proofs import ClientProofs
from infrastructure.mcp.oauth.clients import Clients
from infrastructure.mcp.oauth.discovery import Discovery, FoundServer
from infrastructure.mcp.oauth.grants import Grant, OAuthClient, OAuthStore, PendingAuthorization, Subject, binding_of
from infrastructure.mcp.oauth.obtaining import granted
from infrastructure.mcp.oauth.requests import ServerRequests
from infrastructure.mcp.oauth.tokens import NONE, TokenEndpoint, TokenRefusedError, error_code

PENDING_FOR = timedelta(minutes=10)
_OFFLINE = "offline_access"

FindServer = Callable[[OrganizationId, McpServerId], Awaitable[McpServer | None]]


class OAuthAuthorizer:
    def __init__(
        self,
        *,
        broker: TokenBroker,
        store: OAuthStore,
        requests: ServerRequests,
        proofs: ClientProofs,
        find_server: FindServer,
        address: PublicAddress,
        clock: Clock,
    ) -> None:
        self._broker = broker
        self._store = store
        self._requests = requests
        self._proofs = proofs
        self._find_server = find_server
        self._address = address
        self._clock = clock

    async def begin(self, server: McpServer, key_id: ApiKeyId, *, browser: str | None = None) -> AuthorizationRequest:
        redirect_uri = public_url(self._address, CALLBACK_PATH)
        try:
            return await self._begin(server, key_id, redirect_uri, browser)
        except TransportFailedError as failed:
            raise _unavailable(failed) from failed

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        pending = await self._store.take(_hash(answer.state))
        if pending is None or self._clock.now() >= pending.expires_at:
            raise invalid(
                "authorization_unknown",
                "This authorization is unknown, already used, or expired. Begin it again.",
            )
        _check_browser(pending, answer)
        _check_issuer(pending, answer)
        if answer.error is not None or answer.code is None:
            code = error_code(answer.error)
            raise invalid("authorization_refused", f"The authorization server did not authorize ({code}).")
        found = await self._find_server(pending.organization_id, pending.server_id)
        server = None if found is None else found.acting_for(pending.person_id)
        auth = None if server is None else server.config.auth
        if (
            server is None
            or not isinstance(auth, AuthorizationCodeAuth)
            or binding_of(server.config) != pending.binding
            or server.person_id != pending.person_id
        ):
            raise _outdated()
        try:
            token = await self._exchange(server, pending, answer.code)
        except TransportFailedError as failed:
            raise _unavailable(failed) from failed
        except TokenRefusedError as refused:
            raise invalid(
                "authorization_refused", f"The authorization server did not authorize ({refused.code})."
            ) from refused
        grant = granted(
            token,
            pending.client,
            binding=pending.binding,
            issuer=pending.issuer,
            resource=pending.resource,
            endpoint=pending.token_endpoint,
            scope=pending.scope,
            now=self._clock.now(),
        )
        former = await self._broker.grant(server)
        if not await self._broker.store(server, grant):
            raise _outdated()
        return AuthorizedServer(
            server=server, key_id=pending.key_id, issuer=pending.issuer, had_grant=former is not None
        )

    async def signed_in(self, server: McpServer, sign_in: PersonSignIn) -> bool:
        auth = server.config.auth
        assert isinstance(auth, OnBehalfAuth)
        token, expires_at = sign_in.id_token, sign_in.id_token_expires_at
        if auth.subject_token is SubjectToken.ACCESS_TOKEN:
            if sign_in.access_token is None or sign_in.access_token_expires_at is None:
                return False
            token, expires_at = sign_in.access_token, sign_in.access_token_expires_at
        grant = Grant(
            binding=binding_of(server.config),
            issuer=sign_in.issuer,
            resource="",
            token_endpoint="",
            client=OAuthClient(client_id="", auth_method=NONE),
            scope=None,
            obtained_at=self._clock.now(),
            expires_at=None,
            access_token=None,
            refresh_token=None,
            subject=Subject(
                provider_id=sign_in.provider_id, token=token, kind=auth.subject_token, expires_at=expires_at
            ),
        )
        return await self._broker.store(server, grant)

    async def account(self, server: McpServer) -> Account | None:
        grant = await self._broker.grant(server)
        now = self._clock.now()
        if grant is None or not (grant.has_subject(now) or grant.access_token is not None):
            return None
        if grant.refresh_token is None and grant.is_expired(now) and not grant.has_subject(now):
            return None
        return Account(issuer=grant.issuer, scope=grant.scope, renewed_at=grant.obtained_at)

    async def disconnect(self, server: McpServer) -> bool:
        return await self._broker.remove(server)

    async def _begin(
        self, server: McpServer, key_id: ApiKeyId, redirect_uri: str, browser: str | None
    ) -> AuthorizationRequest:
        auth, url = server.config.auth, server.config.url
        assert isinstance(auth, AuthorizationCodeAuth)
        assert url is not None
        requests = await self._requests.of(server)
        discovery = Discovery(requests=requests)
        challenge = self._broker.challenge(server) or await discovery.challenge(url) or Challenge()
        found = await discovery.find(url, challenge, auth.issuer)
        if "S256" not in (found.metadata.code_challenge_methods_supported or ()):
            raise TransportFailedError(auth_fault("The authorization server does not offer PKCE with S256."))
        former = await self._broker.grant(server)
        client = await Clients(requests=requests).client_for(
            auth,
            found,
            redirect_uri=redirect_uri,
            metadata_url=public_url(self._address, CLIENT_PATH),
            former=former,
        )
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        now = self._clock.now()
        pending = PendingAuthorization(
            organization_id=server.organization_id,
            server_id=server.id,
            key_id=key_id,
            expires_at=now + PENDING_FOR,
            binding=binding_of(server.config),
            issuer=found.issuer,
            issuer_in_answer=bool(found.metadata.authorization_response_iss_parameter_supported),
            resource=found.resource,
            scope=_scope(auth, challenge, found, None if former is None else former.scope),
            token_endpoint=str(found.metadata.token_endpoint),
            client=client,
            redirect_uri=redirect_uri,
            verifier=verifier,
            person_id=server.person_id,
            browser_hash=None if browser is None else _hash(browser),
        )
        await self._store.expect(_hash(state), pending, now)
        sent_to = _authorization_url(str(found.metadata.authorization_endpoint), pending, state)
        return AuthorizationRequest(url=sent_to, expires_at=pending.expires_at)

    async def _exchange(self, server: McpServer, pending: PendingAuthorization, code: str) -> OAuthToken:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": pending.resource,
        }
        proof = await self._proofs.of(server, pending.client, pending.issuer)
        tokens = TokenEndpoint(requests=await self._requests.of(server))
        return await tokens.request(pending.token_endpoint, pending.client, proof, form)


def _scope(auth: AuthorizationCodeAuth, challenge: Challenge, found: FoundServer, granted: str | None) -> str | None:
    """The scopes to request: the configured ones, else those the server requires, else all it
    lists; plus those granted before if the server requires more."""
    scope = " ".join(auth.scopes) or challenge.scope or " ".join(found.scopes or ()) or None
    if challenge.error == "insufficient_scope":
        scope = union_scopes(union_scopes(granted, scope), challenge.scope)
    offered = found.metadata.scopes_supported or []
    return union_scopes(scope, _OFFLINE) if scope is not None and _OFFLINE in offered else scope


def _authorization_url(endpoint: str, pending: PendingAuthorization, state: str) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest()).rstrip(b"=").decode()
    parts = urlsplit(endpoint)
    parameters = {
        **dict(parse_qsl(parts.query)),
        "response_type": "code",
        "client_id": pending.client.client_id,
        "redirect_uri": pending.redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": pending.resource,
        **({"scope": pending.scope} if pending.scope else {}),
    }
    return urlunsplit(parts._replace(query=urlencode(parameters), fragment=""))


def _check_browser(pending: PendingAuthorization, answer: AuthorizationAnswer) -> None:
    """Reject the consent of another person, whom an attacker sent to the authorization server."""
    if pending.browser_hash is not None and not hmac.compare_digest(_hash(answer.browser or ""), pending.browser_hash):
        raise invalid(
            "authorization_elsewhere", "This authorization was begun in another browser. Begin it again here."
        )


def _check_issuer(pending: PendingAuthorization, answer: AuthorizationAnswer) -> None:
    """RFC 9207, section 2.4: reject an answer of another authorization server."""
    if answer.issuer is None and not pending.issuer_in_answer:
        return
    if answer.issuer != pending.issuer:
        raise invalid("authorization_mixed_up", "The answer comes from another authorization server than was asked.")


def _outdated() -> ServiceError:
    detail = "The MCP server or the person's access was changed meanwhile. Begin the authorization again."
    return invalid("authorization_outdated", detail)


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _unavailable(failed: TransportFailedError) -> ServiceError:
    return ServiceError("mcp_authorization_unavailable", ErrorKind.UNAVAILABLE, failed.fault.detail)
