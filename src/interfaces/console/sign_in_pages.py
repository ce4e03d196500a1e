"""Sign-in with identity providers: what the pages show, and the sealed cookies of sign-ins under
way."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from litestar.datastructures import Cookie

from application.gateway.authorization.check_authorization import organization_of
from application.gateway.authorization.describe_authorization import AUTHORIZE_PATH
from application.identity.begin_sign_in import LASTS, PendingSignIn
from application.identity.queries import ListOfferedProviders
from application.identity.sign_out_address import SignOutAddress, SignOutAddressCommand
from application.mcp.oauth_client import PublicAddress, public_url
from application.tools.ports import Box
from domain.errors import ServiceError
from domain.ids import IdentityProviderId, OrganizationId
from interfaces.console.sessions import SignedIn
from interfaces.console_paths import PATH, SIGN_IN_PATH

COOKIES = "dragoman_sign_in_"
"""How the names of their cookies begin."""
_NAME = re.compile(rf"{COOKIES}[0-9a-f]{{16}}")
CALLBACK_PATH = f"{SIGN_IN_PATH}/callback"
MAX_COOKIES = 8
_MAX_COOKIE_BYTES = 6_600
"""Of all sign-ins of a browser: proxies refuse headers above 8 KiB."""
_MAX_TARGET = 2_000
"""Browsers drop cookies above 4,096 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSignIn:
    """A sign-in that this browser began, and the page that it wants."""

    pending: PendingSignIn
    target: str


class SignInPages:
    """Rules:
    - State, nonce and verifier of a sign-in are in a sealed cookie of the browser that began it,
      and nowhere else. Each has its own, so that several may be under way; the oldest ones beyond
      `MAX_COOKIES` end.
    - A cookie is valid for ten minutes, for the sign-in only, and the answer to its own state
      deletes it.
      A copy is worth nothing without a code, which the identity provider redeems once.
    """

    def __init__(
        self,
        *,
        list_offered_providers: ListOfferedProviders,
        sign_out_address: SignOutAddress,
        box: Box,
        address: PublicAddress,
    ) -> None:
        self._offered = list_offered_providers
        self._sign_out_address = sign_out_address
        self._box = box
        self._address = address

    @property
    def callback(self) -> str:
        """Raises CONFLICT `not_listening`."""
        return public_url(self._address, CALLBACK_PATH)

    async def context(
        self, target: str, organization: str | None = None, *, problem: str | None = None
    ) -> dict[str, object]:
        """What the sign-in page shows. Every process shows the same."""
        if organization is None and is_consent(target):
            organization = organization_of(target.partition("?")[2])
        offered = await self._offered.execute(None if organization is None else OrganizationId(organization))
        return {"target": local_page(target), "problem": problem, "providers": offered}

    def begun(self, pending: PendingSignIn, target: str, given: Mapping[str, str]) -> list[Cookie]:
        """The cookie of a sign-in, and the ends of former ones among the `given` that leave it no
        room."""
        document = {
            "provider": pending.provider_id,
            "redirect_uri": pending.redirect_uri,
            "state": pending.state,
            "nonce": pending.nonce,
            "verifier": pending.verifier,
            "until": pending.expires_at.isoformat(),
            "target": local_page(target),
        }
        sealed = self._box.encrypt(json.dumps(document).encode()).decode()
        cookies = [self._cookie(_name(pending.state), sealed, LASTS)]
        names = [name for name in given if _NAME.fullmatch(name)]
        room = _MAX_COOKIE_BYTES - len(sealed)
        for number, name in enumerate(sorted(names, key=lambda name: self._until(given[name]), reverse=True), start=1):
            room -= len(given[name])
            if room < 0 or number >= MAX_COOKIES:
                cookies.append(self._cookie(name, "", timedelta()))
        return cookies

    def ended(self, state: str) -> Cookie:
        return self._cookie(_name(state), "", timedelta())

    def of(self, given: Mapping[str, str], state: str) -> BrowserSignIn | None:
        """The sign-in of a browser; None if it began none of this state here."""
        return self._opened(given.get(_name(state), ""))

    def _until(self, cookie: str) -> float:
        found = self._opened(cookie)
        return 0 if found is None else found.pending.expires_at.timestamp()

    def _opened(self, cookie: str) -> BrowserSignIn | None:
        try:
            document = json.loads(self._box.decrypt(cookie.encode("latin-1", "replace")))
            pending = PendingSignIn(
                provider_id=IdentityProviderId(document["provider"]),
                redirect_uri=document["redirect_uri"],
                state=document["state"],
                nonce=document["nonce"],
                verifier=document["verifier"],
                expires_at=datetime.fromisoformat(document["until"]),
            )
            return BrowserSignIn(pending=pending, target=local_page(document["target"]))
        except (ServiceError, ValueError, KeyError, TypeError):
            return None

    def headers(self, target: str) -> dict[str, str]:
        """Headers of the pages on the way to `target`. Clients on the web open the consent in a
        window, which has to be able to report to them when it comes back."""
        return {"Cross-Origin-Opener-Policy": "unsafe-none"} if is_consent(target) else {}

    async def after_sign_out(self, person: SignedIn) -> str:
        """The sign-in page, by way of the identity provider where it signs out too."""
        if person.provider_id is None or self._address.url is None:
            return SIGN_IN_PATH
        command = SignOutAddressCommand(
            provider_id=person.provider_id, return_to=public_url(self._address, SIGN_IN_PATH)
        )
        return await self._sign_out_address.execute(command) or SIGN_IN_PATH

    def _cookie(self, name: str, value: str, lasts: timedelta) -> Cookie:
        return Cookie(
            key=name,
            value=value,
            path=SIGN_IN_PATH,
            max_age=int(lasts.total_seconds()),
            httponly=True,
            samesite="lax",
            secure=(self._address.url or "").startswith("https:"),
        )


def _name(state: str) -> str:
    return f"{COOKIES}{hashlib.sha256(state.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def is_consent(target: str) -> bool:
    """Whether a page of the console is that of a consent for an OAuth client."""
    return target.partition("?")[0] == AUTHORIZE_PATH


def local_page(target: str) -> str:
    """The target if it is a page of the console, and short enough for the sealed cookie, else the
    start page: never another site or scheme."""
    is_page = len(target) <= _MAX_TARGET and (target == PATH or target.startswith(f"{PATH}/"))
    return target if is_page and target.isascii() and target.isprintable() and "\\" not in target else PATH
