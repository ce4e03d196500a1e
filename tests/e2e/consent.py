"""A person's browser between an OAuth client and the gateway: signs in, reads the page of the
consent, and answers it."""

import html
import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

from tests.e2e.identity_provider import IdentityProvider, begin
from tests.e2e.service import Json, Service

_CSRF = re.compile(r'"X-CSRF-Token": "([\w-]+)"')
_ANSWERED_AT = re.compile(r'<form method="post" hx-post="([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The page of a consent as one browser has it."""

    browser: httpx.Client
    url: str
    text: str

    @property
    def csrf(self) -> str:
        found = _CSRF.search(self.text)
        assert found is not None, self.text
        return found[1]

    def answer(self, decision: str = "allow", **changes: str) -> httpx.Response:
        """Press a button; `changes` are other headers than the page's own."""
        found = _ANSWERED_AT.search(self.text)
        assert found is not None, self.text
        headers = {"X-CSRF-Token": self.csrf, "Sec-Fetch-Site": "same-origin", **changes}
        target = urljoin(self.url, html.unescape(found[1]))
        return self.browser.post(target, data={"decision": decision}, headers=headers)

    def redirected(self, decision: str = "allow") -> str:
        """Where the browser goes then."""
        response = self.answer(decision)
        assert response.status_code == httpx.codes.OK, response.text
        return str(response.headers["hx-redirect"])


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """People of an identity provider who meet a service in their browsers."""

    service: Service
    provider: IdentityProvider
    registered: Json

    def signed_in(self, browser: httpx.Client, url: str, name: str) -> httpx.Response:
        """The page at a URL of the console, after its sign-in."""
        response = browser.get(url)
        if not response.has_redirect_location:
            return response
        target = parse_qs(urlsplit(response.headers["location"]).query)["next"][0]
        back = self.provider.answer(browser, begin(browser, self.service, self.registered["id"], target), name)
        signed = browser.get(back)
        assert signed.has_redirect_location, signed.text
        return browser.get(urljoin(self.service.url, signed.headers["location"]))

    def consent(self, browser: httpx.Client, url: str, name: str = "ann") -> Consent:
        """What a client's authorization request shows a person."""
        page = self.signed_in(browser, url, name)
        assert page.status_code == httpx.codes.OK, page.text
        return Consent(browser=browser, url=str(page.url), text=page.text)

    def redirected(self, url: str, name: str = "ann") -> str:
        """Where the person's browser goes after they allowed what a client asks for."""
        with httpx.Client(trust_env=False, timeout=60.0) as browser:
            return self.consent(browser, url, name).redirected()
