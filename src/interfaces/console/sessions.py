"""Sessions: a cookie with the sealed API key or user id, so that any process opens it, and revoking
the key or deactivating the user ends it."""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from litestar.datastructures import Cookie
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.session_of_user import SessionOfUser, SessionOfUserCommand
from application.mcp.oauth_client import PublicAddress
from application.system.lru import LruCache
from application.system.ports import Clock
from application.tools.ports import Box
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.user import User
from domain.ids import IdentityProviderId, OrganizationId, UserId
from interfaces.console_paths import PATH, SIGN_IN_PATH
from interfaces.host_names import FOREIGN_HOST, host_of, names_this_service

COOKIE = "dragoman_console"
LASTS = timedelta(hours=12)
_MAX_ENDED = 100_000
CSRF_HEADER = b"x-csrf-token"
_OPEN_PATHS = (SIGN_IN_PATH, f"{PATH}/static/")
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A person in a browser. Every changing request carries `csrf`. `provider_id` is where the person signed in; None
    with an API key."""

    principal: Principal
    csrf: str
    provider_id: IdentityProviderId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """`holder` has the API key as `token`, or the ids of `user`, `organization` and `provider`."""

    holder: Mapping[str, str] = field(repr=False)
    csrf: str = field(repr=False)
    until: datetime


class ConsoleSessions:
    """Rules:
    - A session lasts twelve hours, at most as long as its key or its user is valid. Each sign-in has a new one.
    - A session that was ended by signing out is over, also for copies of its cookie, as long as this
      process lives. Other processes accept a copy until the session is over.
    - The Host must name this service.
    - Changing requests must come from the console's own pages.
    """

    def __init__(
        self,
        *,
        authenticate: Authenticate,
        session_of_user: SessionOfUser,
        box: Box,
        clock: Clock,
        address: PublicAddress,
    ) -> None:
        self._authenticate = authenticate
        self._session_of_user = session_of_user
        self._box = box
        self._clock = clock
        self._address = address
        self._ended: LruCache[str, None] = LruCache(_MAX_ENDED)
        """The CSRF tokens of ended sessions, which are random and identify them."""

    async def begun(self, token: str) -> Cookie:
        """A new session for a key. Raises UNAUTHENTICATED, LIMIT."""
        await self._authenticate.execute(AuthenticateCommand(token=token))
        return self._begun({"token": token})

    def begun_by(self, user: User) -> Cookie:
        """A new session for a user, who has just signed in."""
        return self._begun({"user": user.id, "organization": user.organization_id, "provider": user.provider_id})

    def _begun(self, holder: Mapping[str, str]) -> Cookie:
        session = {**holder, "csrf": secrets.token_urlsafe(24), "until": (self._clock.now() + LASTS).isoformat()}
        return self._cookie(self._box.encrypt(json.dumps(session).encode()).decode(), LASTS)

    def end(self, person: SignedIn) -> None:
        """End a session."""
        self._ended.put(person.csrf, None)

    def require_own_host(self, host: str) -> None:
        """Raises FORBIDDEN `host_foreign` unless the Host header names this service."""
        if not names_this_service(host_of(f"//{host}"), self._address.url):
            raise ServiceError("host_foreign", ErrorKind.FORBIDDEN, FOREIGN_HOST)

    def ended(self) -> Cookie:
        """A cookie that ends the session."""
        return self._cookie("", timedelta())

    async def of(self, cookie: str | None) -> SignedIn:
        """The signed-in person. Raises UNAUTHENTICATED, LIMIT."""
        session = None if not cookie else self._opened(cookie)
        if session is None or session.until <= self._clock.now() or session.csrf in self._ended:
            raise _signed_out()
        holder = session.holder
        if "token" in holder:
            principal = await self._authenticate.execute(AuthenticateCommand(token=holder["token"]))
            return SignedIn(principal=principal, csrf=session.csrf)
        principal = await self._session_of_user.execute(
            SessionOfUserCommand(
                organization_id=OrganizationId(holder["organization"]),
                user_id=UserId(holder["user"]),
                expires_at=session.until,
            )
        )
        return SignedIn(principal=principal, csrf=session.csrf, provider_id=IdentityProviderId(holder["provider"]))

    def _opened(self, cookie: str) -> _Session | None:
        try:
            data = json.loads(self._box.decrypt(cookie.encode("latin-1", "replace")))
            csrf, until = data.pop("csrf"), datetime.fromisoformat(data.pop("until"))
            return _Session(holder=data, csrf=csrf, until=until) if data else None
        except (ServiceError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _cookie(self, value: str, lasts: timedelta) -> Cookie:
        # `lax`, so that links in messages work. Changing requests need the token of our own pages.
        return Cookie(
            key=COOKIE,
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
                    person = await sessions.of(_cookie_value(headers.get(b"cookie", b"").decode("latin-1")))
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
    if not hmac.compare_digest(headers.get(CSRF_HEADER, b""), person.csrf.encode()):
        raise _from_elsewhere()


def _cookie_value(header: str) -> str | None:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value.strip('"')
    return None


def _signed_out() -> ServiceError:
    return ServiceError("signed_out", ErrorKind.UNAUTHENTICATED, "Sign in with an API key.")


def _from_elsewhere() -> ServiceError:
    return ServiceError(
        "request_from_elsewhere",
        ErrorKind.FORBIDDEN,
        "This request did not come from a page of the console. Reload it.",
    )
