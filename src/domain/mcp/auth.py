"""Authentication to a remote MCP server: a fixed key, or tokens of an OAuth 2.1 authorization
server."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from domain.errors import Violation
from domain.secrets.secret import SecretRef, SecretValue, violations_of

# RFC 9110, section 5.6.2 (token), and RFC 6749, section 3.3 (scope-token).
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_SCOPE = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]{1,256}")
_AUTHORIZATION = "authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerAuth:
    """A fixed token, sent as `Authorization: Bearer …`."""

    token: SecretValue = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyAuth:
    header: str
    value: SecretValue = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentialsAuth:
    """OAuth client credentials: Dragoman acts for itself.

    - Dragoman proves itself with `client_secret`, or with assertions that it signs with
      `private_key` (RFC 7523), a key in PEM. `key_id` names the key in the assertions.
    - `issuer` fixes the authorization server. Without it, the first one that the MCP server names
      is used and stored.
    """

    client_id: str
    client_secret: SecretValue | None = field(default=None, repr=False)
    private_key: SecretValue | None = field(default=None, repr=False)
    key_id: str | None = None
    scopes: tuple[str, ...] = ()
    issuer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCodeAuth:
    """OAuth authorization code: a person consents once in a browser.

    Without `client_id`, Dragoman registers itself at the authorization server, if the server offers
    that.
    """

    client_id: str | None = None
    client_secret: SecretValue | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    issuer: str | None = None


class SubjectToken(StrEnum):
    """The token of a person's sign-in that is exchanged. The values are part of the public
    contract."""

    ID_TOKEN = "id_token"
    ACCESS_TOKEN = "access_token"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchangeAuth:
    """OAuth token exchange (RFC 8693): the identity provider of a person exchanges a token of their
    sign-in for one of the server.

    - `issuer` names another authorization server of the identity provider, at its origin; None is
      the identity provider.
    - Without `client_id`, Dragoman is the client that people sign in with.
    - `audience` and `resource` name the server as the identity provider knows it; without both,
      `resource` is its URL.
    """

    client_id: str | None = None
    client_secret: SecretValue | None = field(default=None, repr=False)
    private_key: SecretValue | None = field(default=None, repr=False)
    key_id: str | None = None
    scopes: tuple[str, ...] = ()
    issuer: str | None = None
    audience: str | None = None
    resource: str | None = None
    subject_token: SubjectToken = SubjectToken.ID_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class IdJagAuth:
    """Enterprise-managed authorization: the identity provider of a person gives an assertion
    (ID-JAG) for the authorization server `issuer`, which gives a token for it (RFC 7523). The
    client is the one there."""

    client_id: str
    client_secret: SecretValue | None = field(default=None, repr=False)
    private_key: SecretValue | None = field(default=None, repr=False)
    key_id: str | None = None
    scopes: tuple[str, ...] = ()
    issuer: str

    @property
    def subject_token(self) -> SubjectToken:
        return SubjectToken.ID_TOKEN


OnBehalfAuth = TokenExchangeAuth | IdJagAuth
"""Tokens on behalf of each person, from their sign-in."""
OAuthSettings = ClientCredentialsAuth | AuthorizationCodeAuth | OnBehalfAuth
ServerAuth = BearerAuth | ApiKeyAuth | OAuthSettings
MAX_NAME = 2_048


def header_of(auth: ServerAuth) -> str:
    """The header that carries the credentials, in lower case."""
    return auth.header.lower() if isinstance(auth, ApiKeyAuth) else _AUTHORIZATION


def secrets_of(auth: ServerAuth) -> dict[str, SecretValue]:
    """The write-only fields that are set."""
    match auth:
        case BearerAuth():
            return {"token": auth.token}
        case ApiKeyAuth():
            return {"value": auth.value}
        case ClientCredentialsAuth() | TokenExchangeAuth() | IdJagAuth():
            return _given(client_secret=auth.client_secret, private_key=auth.private_key)
        case AuthorizationCodeAuth():
            return _given(client_secret=auth.client_secret)


def wrong_with(auth: ServerAuth) -> Iterator[Violation]:
    """The violations of these settings, each with its path."""
    for name, value in secrets_of(auth).items():
        if not isinstance(value, SecretRef) and not value:
            yield Violation(path=f"auth.{name}", message="must not be empty")
        is_fixed = isinstance(auth, BearerAuth | ApiKeyAuth)
        yield from violations_of(f"auth.{name}", value, of_persons=is_fixed)
    if isinstance(auth, OAuthSettings):
        yield from _wrong_with_oauth(auth)
    match auth:
        case ApiKeyAuth():
            if not _HEADER_NAME.fullmatch(auth.header):
                yield Violation(path="auth.header", message="is not the name of an HTTP header")
        case ClientCredentialsAuth() | IdJagAuth():
            if auth.client_secret is None and auth.private_key is None:
                yield Violation(path="auth.client_secret", message="must be given, or else private_key")
            yield from _wrong_with_key(auth)
        case TokenExchangeAuth():
            yield from _wrong_with_key(auth)
            yield from _wrong_with_names(auth)
        case BearerAuth() | AuthorizationCodeAuth():
            pass


def _given(**secrets: SecretValue | None) -> dict[str, SecretValue]:
    return {name: value for name, value in secrets.items() if value is not None}


def _wrong_with_names(auth: TokenExchangeAuth) -> Iterator[Violation]:
    for name, text in (("audience", auth.audience), ("resource", auth.resource)):
        if text is not None and not (0 < len(text) <= MAX_NAME and text.isprintable()):
            yield Violation(path=f"auth.{name}", message=f"must have 1 to {MAX_NAME} printable characters")


def _wrong_with_key(auth: ClientCredentialsAuth | OnBehalfAuth) -> Iterator[Violation]:
    """A client proves itself in one way."""
    if auth.client_secret is not None and auth.private_key is not None:
        yield Violation(path="auth.client_secret", message="must not be given beside private_key")
    if auth.key_id is not None and (auth.private_key is None or not auth.key_id):
        yield Violation(path="auth.key_id", message="must name the private_key")


def _wrong_with_oauth(auth: OAuthSettings) -> Iterator[Violation]:
    if auth.client_id == "":
        yield Violation(path="auth.client_id", message="must not be empty")
    if auth.client_id is None and secrets_of(auth):
        yield Violation(path="auth.client_secret", message="needs a client_id beside it")
    for index, scope in enumerate(auth.scopes):
        if not _SCOPE.fullmatch(scope):
            yield Violation(path=f"auth.scopes.{index}", message="is not a scope (RFC 6749, section 3.3)")
    if auth.issuer is not None and not auth.issuer.startswith(("https://", "http://")):
        yield Violation(path="auth.issuer", message="must be the URL of an authorization server")
