"""An authorization server and an MCP server that trusts it, in this event loop, each as good or bad
as a test wants."""

import asyncio
import base64
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from domain.ids import McpServerId, OrganizationId
from domain.mcp.auth import AuthorizationCodeAuth, ClientCredentialsAuth, ServerAuth
from domain.mcp.server import McpServer
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.oauth.parts import OAuthParts
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.remote import RemoteClient
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.secrets.redaction import Redactor
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.integration.mcp.parts import LOOPBACK, remote, serving

CLIENT, SECRET = "dragoman", "cl1ent s3cret/+"
CREDENTIALS = ClientCredentialsAuth(client_id=CLIENT, client_secret=SECRET)
BY_PERSON = AuthorizationCodeAuth()
HERE = "http://127.0.0.1:8321"
CALLBACK = f"{HERE}/oauth/callback"


@dataclass(slots=True, kw_only=True)
class AuthorizationServer:
    """Knows one client by hand, registers others, and authorizes whoever asks properly."""

    url: str = ""
    expires_in: int | None = 3600
    metadata: dict[str, Any] = field(default_factory=dict)
    """Members to change; None takes one away."""
    refuses: str | None = None
    """The error code of every token request."""
    replaces_refresh_tokens: bool = True
    gate: asyncio.Event | None = None
    """Token requests wait for it."""
    asked: Counter[str] = field(default_factory=Counter)
    forms: list[dict[str, str]] = field(default_factory=list)
    access_tokens: dict[str, str] = field(default_factory=dict)
    """The valid ones, with their resource."""
    refresh_tokens: set[str] = field(default_factory=set)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    registered: list[dict[str, Any]] = field(default_factory=list)
    waiting: int = 0
    accounts: dict[str, str] = field(default_factory=dict)
    """Whose account each token, code and used token is of."""
    reused: int = 0
    """Refresh tokens that came a second time."""

    def app(self, *, under: str = "") -> Starlette:
        return Starlette(
            routes=[
                Route(f"/.well-known/oauth-authorization-server{under}", self._metadata),
                Route("/token", self._token, methods=["POST"]),
                Route("/register", self._register, methods=["POST"]),
            ]
        )

    def authorize(self, url: str, account: str = "somebody") -> dict[str, str]:
        """What the server adds to the redirect when the person who opened `url` agrees, signed in
        to `account`."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.url}/authorize?")
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.accounts)}"
        self.codes[code] = asked
        self.accounts[code] = account
        return {"code": code, "state": asked["state"], "iss": self.url}

    def withdraw_access(self) -> None:
        """The access tokens given out so far are good for nothing any more."""
        self.access_tokens.clear()

    async def _metadata(self, request: Request) -> Response:
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            **self.metadata,
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    async def _register(self, request: Request) -> Response:
        document = await request.json()
        self.registered.append(document)
        return JSONResponse(
            {**document, "client_id": f"registered-{len(self.registered)}", "client_secret": "registered-secret"},
            status_code=201,
        )

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.forms.append(form)
        self.asked[form["grant_type"]] += 1
        if self.gate is not None:
            self.waiting += 1
            await self.gate.wait()
        if self.refuses is not None:
            return JSONResponse({"error": self.refuses}, status_code=400)
        client = _client_of(request, form)
        match form["grant_type"]:
            case "client_credentials":
                if client != (CLIENT, SECRET):
                    return JSONResponse({"error": "invalid_client"}, status_code=401)
                return self._given(form)
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)
                if asked is None or not _fits(asked, form, client[0]):
                    return JSONResponse({"error": "invalid_grant"}, status_code=400)
                return self._given(form, refreshable=True, account=self.accounts[form["code"]])
            case "refresh_token":
                if form["refresh_token"] not in self.refresh_tokens:
                    self.reused += form["refresh_token"] in self.accounts
                    return JSONResponse({"error": "invalid_grant"}, status_code=400)
                if self.replaces_refresh_tokens:
                    self.refresh_tokens.discard(form["refresh_token"])
                account = self.accounts[form["refresh_token"]]
                return self._given(form, refreshable=self.replaces_refresh_tokens, account=account)
            case _:
                return JSONResponse({"error": "unsupported_grant_type"}, status_code=400)

    def _given(self, form: dict[str, str], *, refreshable: bool = False, account: str = "") -> Response:
        number = sum(self.asked.values())
        token = f"access-token-{number}"
        self.access_tokens[token] = form["resource"]
        self.accounts[token] = account
        answer: dict[str, Any] = {"access_token": token, "token_type": "bearer", "scope": form.get("scope")}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        if refreshable:
            answer["refresh_token"] = f"refresh-token-{number}"
            self.refresh_tokens.add(answer["refresh_token"])
            self.accounts[answer["refresh_token"]] = account
        return JSONResponse({name: value for name, value in answer.items() if value is not None})


def _client_of(request: Request, form: dict[str, str]) -> tuple[str, str | None]:
    header = request.headers.get("authorization")
    if header is None:
        return form["client_id"], form.get("client_secret")
    name, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    unquoted = parse_qs(f"name={name}&secret={secret}")
    return unquoted["name"][0], unquoted["secret"][0]


def _fits(asked: dict[str, str], form: dict[str, str], client_id: str) -> bool:
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return (challenge, form["redirect_uri"], form["resource"], client_id) == (
        asked["code_challenge"],
        asked["redirect_uri"],
        asked["resource"],
        asked["client_id"],
    )


@dataclass(slots=True, kw_only=True)
class ProtectedServer:
    """An MCP server (2025-11-25) that takes tokens of `trusted` for its own address. Its tool
    `whoami` answers with the token it was called with."""

    trusted: AuthorizationServer
    url: str = ""
    resource_metadata: dict[str, Any] = field(default_factory=dict)
    challenge: str = ""
    """Parameters of WWW-Authenticate besides resource_metadata."""
    opens_streams: bool = True
    """Without, it answers GET by 405, whoever asks."""
    wants_scope: str | None = None
    calls: int = 0
    refused: int = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._describe),
                Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"]),
            ]
        )

    async def _describe(self, request: Request) -> Response:
        document = {"resource": self.url, "authorization_servers": [self.trusted.url], **self.resource_metadata}
        return JSONResponse(document)

    async def _answer(self, request: Request) -> Response:
        if request.method == "GET" and not self.opens_streams:
            return Response(status_code=405)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.trusted.access_tokens.get(token) != self.url:
            self.refused += 1
            where = (
                f'Bearer resource_metadata="{self.url.removesuffix("/mcp")}/.well-known/oauth-protected-resource/mcp"'
            )
            return Response(status_code=401, headers={"www-authenticate": where + self.challenge})
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        match message["method"]:
            case "initialize":
                info = {"name": "protected", "version": "1"}
                result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                if self.wants_scope is not None and not self._has_scope():
                    header = f'Bearer error="insufficient_scope", scope="{self.wants_scope}"'
                    return Response(status_code=403, headers={"www-authenticate": header})
                self.calls += 1
                result = {"content": [{"type": "text", "text": token}]}
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return JSONResponse({"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _has_scope(self) -> bool:
        return self.wants_scope in self.trusted.forms[-1].get("scope", "").split()


@dataclass(slots=True, kw_only=True)
class World:
    """Both servers, and OAuth as the service has it, over tables in memory and a clock that stands
    still."""

    authorization: AuthorizationServer
    protected: ProtectedServer
    clock: FixedClock
    state: InMemoryState
    store: InMemoryOAuthStore
    secrets: InMemorySecretStore
    redactor: Redactor
    oauth: OAuthParts
    again: Callable[..., OAuthParts]
    """OAuth as it is after a restart of the service: the same tables, nothing in memory. `is_told`:
    whether it hears of changed grants."""

    def server(self, auth: ServerAuth = CREDENTIALS, **settings: Any) -> McpServer:
        """The protected server, registered."""
        server = remote(self.protected.url, auth=auth, **settings)
        self.state.servers[server.id] = server
        return server


@asynccontextmanager
async def oauth_world(*, egress: EgressPolicy = LOOPBACK, address: str = HERE, under: str = "") -> AsyncIterator[World]:
    """Serve both. `under` is the path of the issuer."""
    authorization = AuthorizationServer()
    protected = ProtectedServer(trusted=authorization)
    state, clock, redactor = InMemoryState(), FixedClock(), Redactor()
    store, secrets = InMemoryOAuthStore(state), InMemorySecretStore(state)
    opened: list[OAuthParts] = []

    async def find(organization_id: OrganizationId, server_id: McpServerId) -> McpServer | None:
        found = state.servers.get(server_id)
        return found if found is not None and found.organization_id == organization_id else None

    def open_oauth(*, is_told: bool = True) -> OAuthParts:
        parts = OAuthParts(
            remote=RemoteClient(egress=egress),
            store=store,
            secrets=SecretValues(secrets=secrets, known=KnownSecrets(redactor)),
            find_server=find,
            find_provider=InMemoryIdentityProviderStore(state).named,
            address=ListeningAddress(address),
            clock=clock,
            is_told=lambda: is_told,
        )
        opened.append(parts)
        return parts

    async with serving(authorization.app(under=under)) as issuer, serving(protected.app()) as url:
        authorization.url, protected.url = f"{issuer}{under}", f"{url}/mcp"
        try:
            yield World(
                authorization=authorization,
                protected=protected,
                clock=clock,
                state=state,
                store=store,
                secrets=secrets,
                redactor=redactor,
                oauth=open_oauth(),
                again=open_oauth,
            )
        finally:
            for parts in opened:
                await parts.close()
