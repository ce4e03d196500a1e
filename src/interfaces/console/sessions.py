"""Sessions in browsers: a cookie with the sealed id of a stored session, and with the API key that
it was begun with."""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from litestar import Request
from litestar.datastructures import Cookie
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.begin_console_session import BeginConsoleSession, BeginConsoleSessionCommand
from application.identity.continue_console_session import (
    ContinueConsoleSession,
    ContinueConsoleSessionCommand,
    signed_out,
)
from application.identity.impersonations import Impersonations
from application.identity.ports import UserStore
from application.identity.session_of_user import SessionOfUser, SessionOfUserCommand
from application.mcp.oauth_client import PublicAddress
from application.revocation.end_session import EndSession, EndSessionCommand
from application.tools.ports import Box
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.console_session import SESSION_LASTS, ConsoleSession
from domain.identity.impersonation import Impersonation
from domain.identity.user import User
from domain.ids import ConsoleSessionId, IdentityProviderId, OrganizationId, UserId
from interfaces.console_paths import PATH, SIGN_IN_PATH
from interfaces.host_names import FOREIGN_HOST, host_of, names_this_service

COOKIE = "dragoman_console"
AS_COOKIE = "dragoman_console_as"
"""Of an impersonation; its token, sealed."""
CSRF_HEADER = b"x-csrf-token"
_OPEN_PATHS = (SIGN_IN_PATH, f"{PATH}/static/")
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A person in a browser. Every changing request carries `csrf`. `provider_id` is where the
    person signed in; None with an API key. During an impersonation `principal` acts as another
    user, `own` is who signed in, and `csrf` is of it alone, so that no page changes anything as
    someone else than it shows. `acting_as` is that user's name. `is_acting_over`: the browser still
    has the cookie of an impersonation that is over."""

    principal: Principal
    own: Principal
    csrf: str
    impersonation: Impersonation | None = None
    provider_id: IdentityProviderId | None = None
    is_acting_over: bool = False
    acting_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """What a browser, or a proxy in front of it, says of itself."""

    address: str
    user_agent: str | None


def browser_of(request: Request[Any, Any, Any]) -> Browser:
    return Browser(
        address="" if request.client is None else request.client.host, user_agent=request.headers.get("user-agent")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cookie:
    """What the sealed cookie names. `token` is the API key; None for users."""

    session_id: ConsoleSessionId
    organization_id: OrganizationId
    csrf: str = field(repr=False)
    token: str | None = field(repr=False)


class ConsoleSessions:
    """Rules:
    - A session lasts twelve hours, at most as long as its key or its user is valid. Each sign-in
      has a new one.
    - A session that was ended is over in every process, also for copies of its cookie.
    - An impersonation that this session's own user or key began is in a second cookie. Once it is
      over, the session continues without it, and pages of it change nothing any more.
    - The Host must name this service.
    - Changing requests must come from the console's own pages.
    """

    def __init__(
        self,
        *,
        authenticate: Authenticate,
        session_of_user: SessionOfUser,
        begin_console_session: BeginConsoleSession,
        continue_console_session: ContinueConsoleSession,
        end_session: EndSession,
        acting_as_others: Impersonations,
        users: UserStore,
        box: Box,
        address: PublicAddress,
    ) -> None:
        self._authenticate = authenticate
        self._session_of_user = session_of_user
        self._begin = begin_console_session
        self._continue = continue_console_session
        self._end = end_session
        self._as_others = acting_as_others
        self._users = users
        self._box = box
        self._address = address

    async def begun(self, token: str, browser: Browser) -> Cookie:
        """A new session for a key. Raises UNAUTHENTICATED, LIMIT."""
        principal = await self._authenticate.execute(AuthenticateCommand(token=token))
        session = await self._begin.execute(
            BeginConsoleSessionCommand(
                organization_id=principal.organization_id,
                holder=principal.key_id,
                address=browser.address,
                user_agent=browser.user_agent,
            )
        )
        return self._begun(session, token)

    async def begun_by(self, user: User, browser: Browser) -> Cookie:
        """A new session for a user, who has just signed in."""
        session = await self._begin.execute(
            BeginConsoleSessionCommand(
                organization_id=user.organization_id,
                holder=user.actor,
                provider_id=user.provider_id,
                address=browser.address,
                user_agent=browser.user_agent,
            )
        )
        return self._begun(session, None)

    def _begun(self, session: ConsoleSession, token: str | None) -> Cookie:
        document = {
            "session": session.id,
            "organization": session.organization_id,
            "csrf": secrets.token_urlsafe(24),
            "token": token,
        }
        return self._cookie(self._box.encrypt(json.dumps(document).encode()).decode(), SESSION_LASTS)

    async def end(self, person: SignedIn) -> None:
        """End a session and its impersonation, if they have not ended meanwhile."""
        if person.impersonation is not None:
            await self._end_one(person, person.impersonation.id)
        await self._end_one(person, person.own.session_id or "")

    async def _end_one(self, person: SignedIn, session_id: str) -> None:
        try:
            await self._end.execute(EndSessionCommand(principal=person.own, session_id=session_id))
        except ServiceError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN):
                raise

    def acting(self, token: str) -> Cookie:
        """The cookie of an impersonation that has begun."""
        return self._cookie(self._box.encrypt(token.encode()).decode(), SESSION_LASTS, AS_COOKIE)

    def not_acting(self) -> Cookie:
        """A cookie without an impersonation."""
        return self._cookie("", timedelta(), AS_COOKIE)

    async def end_impersonation(self, person: SignedIn) -> None:
        """End the impersonation of this browser."""
        if person.impersonation is not None:
            await self._end_one(person, person.impersonation.id)

    def require_own_host(self, host: str) -> None:
        """Raises FORBIDDEN `host_foreign` unless the Host header names this service."""
        if not names_this_service(host_of(f"//{host}"), self._address.url):
            raise ServiceError("host_foreign", ErrorKind.FORBIDDEN, FOREIGN_HOST)

    def ended(self) -> Cookie:
        """A cookie that ends the session."""
        return self._cookie("", timedelta())

    async def of(self, cookie: str | None, as_cookie: str | None = None) -> SignedIn:
        """The signed-in person. Raises UNAUTHENTICATED, LIMIT."""
        opened = None if not cookie else self._opened(cookie)
        if opened is None:
            raise signed_out()
        session = await self._continue.execute(
            ContinueConsoleSessionCommand(organization_id=opened.organization_id, session_id=opened.session_id)
        )
        principal = replace(await self._principal(session, opened.token), session_id=session.id)
        person = SignedIn(principal=principal, own=principal, csrf=opened.csrf, provider_id=session.provider_id)
        return person if not as_cookie else await self._as_other(person, as_cookie)

    async def of_headers(self, headers: Mapping[bytes, bytes]) -> SignedIn:
        """The signed-in person of a request. Raises UNAUTHENTICATED, LIMIT."""
        cookies = headers.get(b"cookie", b"").decode("latin-1")
        return await self.of(_cookie_value(cookies, COOKIE), _cookie_value(cookies, AS_COOKIE))

    async def _as_other(self, person: SignedIn, cookie: str) -> SignedIn:
        over = replace(person, is_acting_over=True)
        try:
            token = self._box.decrypt(cookie.encode("latin-1", "replace")).decode()
        except (ServiceError, ValueError):
            return over
        try:
            principal, impersonation = await self._as_others.of_token(token)
        except ServiceError as error:
            if error.kind is not ErrorKind.UNAUTHENTICATED:
                raise
            return over
        if (impersonation.organization_id, impersonation.actor) != (person.own.organization_id, person.own.key_id):
            return over
        acting = replace(principal, session_id=person.own.session_id)
        csrf = hmac.digest(person.csrf.encode(), impersonation.id.encode(), "sha256").hex()
        user = await self._users.get(impersonation.organization_id, impersonation.user_id)
        name = impersonation.user_id if user is None else user.name or user.email or user.subject
        return replace(person, principal=acting, impersonation=impersonation, csrf=csrf, acting_as=name)

    async def _principal(self, session: ConsoleSession, token: str | None) -> Principal:
        if token is not None:
            return await self._authenticate.execute(AuthenticateCommand(token=token))
        return await self._session_of_user.execute(
            SessionOfUserCommand(
                organization_id=session.organization_id,
                user_id=UserId(session.holder),
                expires_at=session.expires_at,
            )
        )

    def _opened(self, cookie: str) -> _Cookie | None:
        try:
            data = json.loads(self._box.decrypt(cookie.encode("latin-1", "replace")))
            return _Cookie(
                session_id=ConsoleSessionId(data["session"]),
                organization_id=OrganizationId(data["organization"]),
                csrf=data["csrf"],
                token=data["token"],
            )
        except (ServiceError, ValueError, KeyError, TypeError):
            return None

    def _cookie(self, value: str, lasts: timedelta, name: str = COOKIE) -> Cookie:
        # `lax`, so that links in messages work. Changing requests need the token of our own pages.
        return Cookie(
            key=name,
            value=value,
            path=PATH,
            max_age=int(lasts.total_seconds()),
            httponly=True,
            samesite="lax",
            secure=(self._address.url or "").startswith("https:"),
        )


def signed_in(sessions: ConsoleSessions) -> Callable[[ASGIApp], ASGIApp]:
    """Middleware that sets the signed-in person on the request, and rejects requests of other
    origins."""

    def middleware(app: ASGIApp) -> ASGIApp:
        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == ScopeType.HTTP:
                headers = dict(scope["headers"])
                sessions.require_own_host(headers.get(b"host", b"").decode("latin-1"))
                if scope["method"] not in _SAFE:
                    _require_same_origin(headers)
                if not scope["path"].startswith(_OPEN_PATHS):
                    person = await sessions.of_headers(headers)
                    if scope["method"] not in _SAFE:
                        _require_csrf(headers, person)
                    scope["auth"] = person
            await app(scope, receive, send)

        return checked

    return middleware


def _require_same_origin(headers: dict[bytes, bytes]) -> None:
    """Browsers report the origin of a request (Fetch Metadata; else Origin), and sites cannot
    forge it."""
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin")
    if site is not None and site != b"same-origin":
        raise _from_elsewhere()
    if origin is not None and origin.partition(b"://")[2] != headers.get(b"host", b""):
        raise _from_elsewhere()


def _require_csrf(headers: dict[bytes, bytes], person: SignedIn) -> None:
    if hmac.compare_digest(headers.get(CSRF_HEADER, b""), person.csrf.encode()):
        return
    if person.is_acting_over:
        raise conflict("impersonation_over", "The impersonation is over. Reload the page to continue as yourself.")
    raise _from_elsewhere()


def _cookie_value(header: str, wanted: str) -> str | None:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value.strip('"')
    return None


def _from_elsewhere() -> ServiceError:
    return ServiceError(
        "request_from_elsewhere",
        ErrorKind.FORBIDDEN,
        "This request did not come from a page of the console. Reload it.",
    )
